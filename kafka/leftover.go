package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// Brokers behind 4.0, at least up to 4.3.1 (KAFKA-20734), write no transaction marker to
// a partition that has no leader at that moment, as if it had been deleted, and take the
// transaction for ended. What is left open there is hidden until the next marker of our
// producer id, and becomes part of that one's transaction: aborted rows are committed
// with it, committed rows aborted. Therefore
//   - a partition gets records only after its leader said that nothing of ours is open
//     there: before the first ones of an epoch, and after each transaction;
//   - a position record names where the records of its batch end, and where older ones
//     end whose leader could not be asked (ending), so that the next leader knows what
//     of an open transaction was committed;
//   - what is open and has been ended gets a marker by a transaction that holds nothing
//     else. What can't be told apart stops the connector.
//
// A topic that we may not read does not tell. There it is left to wait for leaders
// before the claim, which is not certain, and to say so.

const (
	// leaderPatience is how long a partition that is needed may have no leader before
	// the session ends.
	leaderPatience = 5 * time.Second
	// markerPatience is how long Kafka may take to end a transaction everywhere before
	// the session ends.
	markerPatience = 30 * time.Second
	// awayPause is how long a leader that could not be asked is left alone.
	awayPause = time.Second
)

// choice is what an administrator wants of what is open in a partition.
type choice struct {
	at      topicPartition
	verdict verdict
	found   bool // something waited for it
}

// partitions is what this epoch knows of partitions with records of ours.
type partitions struct {
	id      producerID
	former  []int64 // ids of the connector's producers before
	before  sarama.TransactionState
	clean   map[topicPartition]bool      // nothing of an earlier transaction is open there
	pending map[topicPartition]ending    // something may be
	unnamed bool                         // there may be committed records that pending does not name
	sent    map[topicPartition]ending    // of the open transaction
	count   map[topicPartition]int32     // records of this epoch
	away    map[topicPartition]time.Time // when its leader could not be asked
	unseen  map[string]bool
}

func newPartitions() partitions {
	return partitions{
		id: producerID{-1, -1}, clean: map[topicPartition]bool{}, pending: map[topicPartition]ending{},
		sent:  map[topicPartition]ending{},
		count: map[topicPartition]int32{}, away: map[topicPartition]time.Time{}, unseen: map[string]bool{},
	}
}

// trace is what the next position record says of them.
func (p *partitions) trace() *trace {
	if p.id.producer < 0 { // nobody sees what is open
		return &trace{Producer: -1, Former: p.former, Unnamed: true}
	}
	all := make(map[topicPartition]ending, len(p.pending)+len(p.sent))
	for at, e := range p.pending {
		e.earlier = true
		all[at] = e
	}
	for at, e := range p.sent {
		all[at] = e
	}
	t := newEvents(p.id.producer, p.former, all)
	t.Unnamed = t.Unnamed || p.unnamed
	return t
}

// acknowledged counts what a flight has sent.
func (p *partitions) acknowledged(f *flight) {
	for i, at := range f.parts {
		e := &f.ends[i]
		if e.records == 0 {
			continue
		}
		p.count[at] += e.records
		if p.count[at] < 0 {
			p.count[at] &= 1<<31 - 1 // as Kafka counts on
		}
		last := ending{producer: p.id.producer, epoch: p.id.epoch, offset: e.offset,
			sequence: (p.count[at] - 1) & (1<<31 - 1)}
		if e.unknown {
			last.offset = -1
		}
		p.sent[at] = last
		p.clean[at] = true
	}
}

// committed takes the open transaction's endings for those whose markers are on their
// way.
func (p *partitions) committed() {
	for at, e := range p.sent {
		p.pending[at] = e
		delete(p.clean, at)
	}
	clear(p.sent)
}

// sees reports whether the brokers tell what is open at all.
func (s *ExactlyOnce) sees() bool { return s.p.sees }

// inspect looks before the claim at the transaction that the claim will abort. It is
// an error when its marker would hide that committed records have none.
func (s *ExactlyOnce) inspect(ctx context.Context) error {
	if !s.sees() {
		s.tellUnseen("", "the brokers do not answer DescribeTransactions and DescribeProducers")
		return nil
	}
	for until := time.Now().Add(leaderPatience); ; {
		state, coordinator, ready, err := s.transaction()
		if err != nil {
			return err
		}
		var blind string
		if ready {
			if s.parts.before = state; len(state.Topics) == 0 {
				return nil
			}
			if blind, err = s.blindLeaderless(coordinator, state); err == nil && blind == "" {
				return s.inspectShared(ctx, state, coordinator)
			}
		}
		if err != nil {
			return err
		}
		if time.Now().After(until) {
			if !ready {
				return newError(Unavailable, "the transaction coordinator is moving", nil)
			}
			return onTopic(newError(Unavailable, "a partition of the transaction that is to be aborted has no leader, and "+
				"without the right READ on its topic nobody can tell afterwards whether it was aborted there: "+
				"start its broker, or grant the right: kafka-acls.sh --bootstrap-server "+s.pub.cfg.Brokers[0]+
				" --add --allow-principal PRINCIPAL --operation Read --topic "+blind, nil), blind)
		}
		if err := pause(ctx, maxLookWait); err != nil {
			return err
		}
	}
}

// blindLeaderless returns a topic of the transaction that we may not read and of which
// the coordinator knows a partition without a leader.
func (s *ExactlyOnce) blindLeaderless(coordinator *sarama.Broker, state sarama.TransactionState) (string, error) {
	req := &sarama.MetadataRequest{Version: 8, IncludeTopicAuthorizedOperations: true}
	wanted := map[string][]int32{}
	for _, t := range state.Topics {
		req.Topics = append(req.Topics, t.Topic)
		wanted[t.Topic] = t.Partitions
	}
	answer, err := coordinator.GetMetadata(req)
	if err != nil {
		return "", err
	}
	for _, t := range answer.Topics {
		if !known(t.TopicAuthorizedOperations) || allowed(t.TopicAuthorizedOperations, opRead) {
			continue
		}
		for _, p := range t.Partitions {
			if p.Leader < 0 && slices.Contains(wanted[t.Name], p.ID) {
				return t.Name, nil
			}
		}
	}
	return "", nil
}

// inspectShared compares what is open with the batch that was committed before it. Where
// rows of both are in one transaction it does what an administrator has chosen, or stops.
func (s *ExactlyOnce) inspectShared(ctx context.Context, state sarama.TransactionState,
	coordinator *sarama.Broker) error {
	last, err := readPosition(ctx, s.p.client, s.pub.cfg.PositionTopic(), "")
	if err != nil {
		return classify("reading the position before the claim", err)
	}
	t, err := last.trace()
	if err != nil {
		return unreadable(s.pub.cfg.PositionTopic(), err)
	}
	endings := t.endings()
	var shared []topicPartition
	for _, t := range state.Topics {
		for _, id := range t.Partitions {
			at := topicPartition{t.Topic, id}
			if _, ok := endings[at]; ok {
				shared = append(shared, at)
			}
		}
	}
	if len(shared) == 0 {
		return nil
	}
	mixed := map[topicPartition]hanging{}
	for at, open := range look(s.p.client, shared).open {
		e := endings[at]
		for _, h := range open {
			if h.producer == state.ProducerID && judge(h, &e) != toAbort {
				mixed[at] = h
			}
		}
	}
	if len(mixed) == 0 {
		return nil
	}
	places := sorted(mixed)
	if s.choice != nil && slices.Contains(places, s.choice.at) {
		return s.obeyBeforeClaim(state, coordinator)
	}
	e := endings[places[0]]
	return s.undecidable(places[0], mixed[places[0]], &e, places[1:]...)
}

// identify takes note of the id and epoch that the claim has brought.
func (s *ExactlyOnce) identify() error {
	if !s.sees() {
		return nil
	}
	id, ok := s.p.dialer.claimed()
	if !ok {
		return newError(ProducerState, "the brokers' answer to the claim of the transactional id was not understood", nil)
	}
	s.parts.id = id
	if old := s.parts.before.ProducerID; old >= 0 && s.parts.before.TransactionState != "" && old != id.producer {
		s.parts.former = append(s.parts.former, old)
	}
	return nil
}

// inherit takes over what the last position record says, and what the claim has
// aborted.
func (s *ExactlyOnce) inherit(t *trace) {
	own := s.positionPartition()
	// It may have been committed after we looked. Then its endings are named, unless they
	// are too many.
	aborted := t == nil || !t.Unnamed
	for _, topic := range s.parts.before.Topics {
		for _, id := range topic.Partitions {
			if at := (topicPartition{topic.Topic, id}); at != own {
				s.parts.pending[at] = ending{producer: s.parts.before.ProducerID, epoch: s.parts.before.ProducerEpoch, offset: -1,
					sequence: -1, aborted: aborted}
			}
		}
	}
	for at, e := range t.endings() {
		s.parts.pending[at] = e
	}
	if t != nil {
		s.parts.unnamed = t.Unnamed
		for _, id := range t.ids(s.parts.id.producer) {
			if !slices.Contains(s.parts.former, id) {
				s.parts.former = append(s.parts.former, id)
			}
		}
		s.parts.former = s.parts.former[max(0, len(s.parts.former)-maxFormer):]
	}
}

func (s *ExactlyOnce) positionPartition() topicPartition {
	return topicPartition{s.pub.cfg.PositionTopic(), 0}
}

// settle returns when nothing of ours is open in the partitions that are needed, and in
// the pending ones whose leaders answer. What the coordinator has ended without a
// marker gets one.
func (s *ExactlyOnce) settle(ctx context.Context, needed []topicPartition) error {
	if !s.sees() {
		clear(s.parts.pending)
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.pub.markers, newError(Unavailable,
		"Kafka has not ended the last transaction in all of its partitions: see whether all brokers are healthy", nil))
	defer cancel()
	need := make(map[topicPartition]bool, len(needed))
	for _, at := range needed {
		need[at] = true
	}
	ask := s.parts.toAsk(need)
	until, ended := time.Now().Add(leaderPatience), false
	for wait := time.Millisecond; len(ask) > 0; wait = min(2*wait, maxLookWait) {
		found := look(s.p.client, ask)
		open, err := s.ours(found)
		if err != nil {
			return err
		}
		waits := s.note(ask, found, open, need)
		switch {
		case len(open) == 0 && len(waits) == 0:
			return nil
		case len(waits) > 0 && time.Now().After(until):
			e := onTopic(newError(Unavailable, "the partition has no leader that says whether a transaction is open: start "+
				"its broker; if it is gone for good, "+
				"have another replica lead (kafka-leader-election.sh --election-type unclean), or make the topic anew "+
				"(kafka-topics.sh --delete --topic "+waits[0].topic+")", found.away[waits[0]]), waits[0].topic)
			e.Partition = waits[0].id
			return e
		case len(open) > 0 && ended:
			if err := s.finish(ctx, open); err != nil {
				return err
			}
			ended = false
		case len(open) > 0:
			if ended, err = s.isEnded(); err != nil {
				return err
			}
		}
		ask = append(sorted(open), waits...)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

// isEnded reports whether the coordinator believes that the last transaction has all
// its markers. That of another writer is none of ours to wait for.
func (s *ExactlyOnce) isEnded() (bool, error) {
	state, _, ready, err := s.transaction()
	if err != nil {
		return false, classify("asking for the transaction's state", err)
	}
	if now := (producerID{state.ProducerID, state.ProducerEpoch}); ready && now != s.parts.id {
		return false, classify("asking for the transaction's state", sarama.ErrProducerFenced)
	}
	return ready && isEnded(state), nil
}

// toAsk are the needed partitions of which nothing is known yet, and the pending ones
// unless their leader could not be asked a moment ago.
func (p *partitions) toAsk(need map[topicPartition]bool) []topicPartition {
	var ask []topicPartition
	for at := range need {
		if _, ok := p.pending[at]; !ok && !p.clean[at] && !p.unseen[at.topic] {
			ask = append(ask, at)
		}
	}
	for at := range p.pending {
		if !p.unseen[at.topic] && (need[at] || time.Since(p.away[at]) > awayPause) {
			ask = append(ask, at)
		}
	}
	return ask
}

// note keeps what was found of the partitions that were asked. It returns those that
// are needed and could not be asked.
func (s *ExactlyOnce) note(ask []topicPartition, found seen, open map[topicPartition]hanging,
	need map[topicPartition]bool) (waits []topicPartition) {
	for _, at := range ask {
		_, isOpen := open[at]
		switch {
		case found.unseen[at.topic]:
			// It stays pending: who may read the topic later has to know.
			s.tellUnseen(at.topic, "no right READ on the topic, or its leader does not tell")
		case found.away[at] != nil:
			s.parts.away[at] = time.Now()
			if need[at] {
				waits = append(waits, at)
			}
		case !isOpen:
			delete(s.parts.pending, at)
			s.parts.clean[at] = true
		}
	}
	if len(found.away) > 0 {
		refresh(s.p.client, found.away)
	}
	return waits
}

// ours picks the connector's own transactions. One of an id that Kafka has given up
// can't be ended by us.
func (s *ExactlyOnce) ours(found seen) (map[topicPartition]hanging, error) {
	open := map[topicPartition]hanging{}
	for at, all := range found.open {
		for _, h := range all {
			switch {
			case h.producer == s.parts.id.producer && h.epoch > int32(s.parts.id.epoch):
				return nil, classify("looking at open transactions", sarama.ErrProducerFenced) // it is another writer's
			case h.producer == s.parts.id.producer:
				open[at] = h
			case slices.Contains(s.parts.former, h.producer):
				return nil, s.abandoned(at, h)
			}
		}
	}
	return open, nil
}

// finish ends what was left open, as it was ended elsewhere.
func (s *ExactlyOnce) finish(ctx context.Context, open map[topicPartition]hanging) error {
	var commit, abort []topicPartition
	var stop error // after the others have got their markers
	for _, at := range sorted(open) {
		h := open[at]
		v, e, err := s.decide(ctx, at, h)
		switch {
		case err != nil:
			return err
		case v == undecided:
			if stop == nil {
				stop = s.undecidable(at, h, e)
			}
			continue
		case v == toCommit:
			commit = append(commit, at)
		default:
			abort = append(abort, at)
		}
		s.pub.log.Warn("Kafka has ended a transaction without its marker in a partition; it gets one now",
			"topic", at.topic, "partition", at.id, "offset", h.start, "commit", v == toCommit)
		s.pub.metrics.leftovers.Inc()
	}
	for _, end := range []struct {
		parts  []topicPartition
		commit bool
	}{{commit, true}, {abort, false}} {
		if len(end.parts) == 0 {
			continue
		}
		if err := s.endOnly(ctx, end.parts, end.commit); err != nil {
			return classify("ending what a transaction has left open", err)
		}
	}
	return stop
}

// decide says what becomes of one open transaction: an administrator's choice is for
// what can't be known.
func (s *ExactlyOnce) decide(ctx context.Context, at topicPartition, h hanging) (verdict, *ending, error) {
	v, e, err := s.known(ctx, at, h)
	if err == nil && v == undecided && s.choice != nil && s.choice.at == at {
		s.choice.found, v = true, s.choice.verdict
	}
	return v, e, err
}

// known says what is known of one open transaction.
func (s *ExactlyOnce) known(ctx context.Context, at topicPartition, h hanging) (verdict, *ending, error) {
	e, ok := s.parts.pending[at]
	switch {
	case ok:
		return judge(h, &e), &e, nil
	case at == s.positionPartition():
		v, err := s.judgePosition(ctx, h)
		return v, nil, err
	case s.parts.unnamed:
		return undecided, nil, nil
	default:
		return toAbort, nil, nil
	}
}

// tellUnseen says once for each topic that nobody can see what is open there.
func (s *ExactlyOnce) tellUnseen(topic, why string) {
	if s.parts.unseen[topic] {
		return
	}
	s.parts.unseen[topic] = true
	if s.pub.unseen.add(topic) {
		s.pub.log.Warn("what a transaction leaves open in a partition without a leader can't be seen: rows may come twice "+
			"or be lost when a broker fails",
			"topic", topic, "reason", why)
	}
}
