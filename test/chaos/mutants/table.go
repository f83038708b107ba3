package main

const (
	fast   = "./test/chaos/fast"
	sink   = "kafka/exactlyonce.go"
	script = "scripted sink on an in-process Kafka"
	many   = "schedules on an in-process Kafka"
	binlog = "scripted binlog"

	brokers    = "three real brokers, a partition without a leader"
	leaderless = "^TestRealMarkerOfALeaderlessPartition$"
)

// Mutants are the rules of exactly once and of positions, each broken.
func Mutants() []Mutant { //nolint:funlen // a table
	return []Mutant{
		{
			Name: "position-at-gtid", Rule: "a position moves at commits, never at the GTID event",
			Harm:  "the tail of a transaction that is cut is lost",
			Level: binlog, Package: fast, Test: "^TestCutAtEachEvent$",
			Edits: []Edit{{"canal/group.go", `
	w.group.known, w.group.gtid = true, e
`, `
	w.group.known, w.group.gtid = true, e
	if err := w.emit(txn.Transaction{Commit: w.commitPos(h), Final: true}); err != nil {
		return err
	}
`}},
		},
		{
			Name: "half-transaction", Rule: "a transaction that was read by half is forgotten",
			Harm:  "its rows come without their end, or twice",
			Level: binlog, Package: fast, Test: "^TestCutAtEachEvent$",
			Edits: []Edit{{"canal/stream.go", `
	s.queue.fail(err)
	s.metrics.failed(err)
	s.dialer.close()
	s.release(d, w)
`, `
	s.dialer.close()
	d.close()
	if !w.hold.empty() {
		_ = w.decode(w.commitPos(header{}))
	}
	s.queue.fail(err)
	s.metrics.failed(err)
	s.release(d, w)
`}},
		},
		{
			Name: "columns-of-today", Rule: "what the server says of columns counts when nothing changes the table until there",
			Harm:  "rows before a change are published with the columns after it",
			Level: binlog, Package: "./canal", Test: "^TestG2AnswerOfLaterColumns$",
			Edits: []Edit{{"canal/tableversion.go", `
	case changes:
		return`, `
	case changes && false:
		return`}},
		},
		{
			Name: "columns-not-kept", Rule: "the columns of tables go with the position",
			Harm:  "after a restart rows before a change have nobody who knows their columns",
			Level: binlog, Package: "./canal", Test: "^TestG2ColumnsGoThroughDDL$",
			Edits: []Edit{{"canal/batch.go", `
		b.commitPos.Columns = b.w.tableVersions.known.changed()
`, `
		b.w.tableVersions.known.changed()
`}},
		},
		{
			Name: "unlogged-change", Rule: "a new table id has the server asked for the columns again",
			Harm:  "a change with sql_log_bin=0 puts values into other fields",
			Level: binlog, Package: "./canal", Test: "^TestF5NewTableID$",
			Edits: []Edit{{"canal/tables.go", `
		tab.moved, tab.id = tab.moved || tab.id != m.id, m.id
`, `
		tab.moved, tab.id = false, m.id
`}},
		},
		{
			Name: "foreign-gtids", Rule: "transactions without outbox rows move the position too",
			Harm:  "the position rots until the server purges what it still asks for",
			Level: binlog, Package: fast, Test: "^TestCutAtEachEvent$",
			Edits: []Edit{{"canal/group.go", `
		if err := w.emit(txn.Transaction{Commit: commitPos, Final: true}); err != nil {
			return err
		}
	} else if`, `
	} else if`}},
		},
		{
			Name: "latest-ack", Rule: "at least once, the position moves over a prefix without a gap",
			Harm:  "a record that failed is passed over when a later one was acknowledged",
			Level: "acknowledgements in any order", Package: "./kafka", Test: "^TestTracker",
			Edits: []Edit{{"kafka/tracker.go", `
	t.open[group]--
`, `
	t.open[group]--
	if t.open[group] == 0 {
		t.done = max(t.done, group+1)
	}
`}},
		},
		{
			Name: "random-id", Rule: "all nodes use one transactional id",
			Harm:  "nobody fences a leader that was paused",
			Level: script, Package: fast, Test: "^TestTakeover$",
			Edits: []Edit{{sink, `s.pub.connect(ctx, s.pub.cfg.TransactionalID(), func()`, `s.pub.connect(ctx, s.pub.cfg.TransactionalID()+"-"+uuid.NewString(), func()`}},
		},
		{
			Name: "read-before-init", Rule: "the position is read after the transactional id is claimed",
			Harm:  "the old leader's last commit comes after the reading, and its rows come twice",
			Level: script, Package: fast, Test: "^TestTakeover$",
			Edits: []Edit{
				{sink, `
		if err := s.claim(ctx); err != nil {
			return err
		}
`, `
		early, err := readEarly(ctx, s)
		if err != nil {
			return err
		}
		if err := s.claim(ctx); err != nil {
			return err
		}
`},
				{sink, `
		read, err := readPosition(ctx, p.client, s.pub.cfg.PositionTopic(), s.positions.session)
`, `
		read := early
`},
				{sink, `
// claim sends`, `
func readEarly(ctx context.Context, s *ExactlyOnce) (*history, error) {
	r := positionReader{client: s.p.client, topic: s.pub.cfg.PositionTopic(), aborted: map[int64]bool{}}
	for ctx.Err() == nil {
		at := r.offset
		block, err := r.fetch()
		if err != nil {
			return nil, err
		}
		if _, err := r.block(block); err != nil {
			return nil, err
		}
		if r.offset == at {
			break
		}
	}
	return &r.history, nil
}

// claim sends`},
			},
		},
		{
			Name: "remembered-position", Rule: "where to go on is read from Kafka at each opening, never remembered",
			Harm:  "what others have published in the meantime comes twice",
			Level: script, Package: fast, Test: "^TestTakeover$",
			Edits: []Edit{
				{sink, `
	"sync/atomic"
`, `
	"sync"
	"sync/atomic"
`},
				{sink, `
	s.last = pos
	s.dead = false
`, `
	if own, ok := remembered.Load(s.pub); ok {
		pos, found = own.(position.Position), true
	}
	s.last = pos
	s.dead = false
`},
				{sink, `
	s.last = b.Position
`, `
	remembered.Store(s.pub, b.Position)
	s.last = b.Position
`},
				{sink, `
// Open fences`, `
var remembered sync.Map

// Open fences`},
			},
		},
		{
			Name: "no-taint", Rule: "a commit that had to be repeated is followed by a new epoch",
			Harm:  "the other copy commits half of the next transaction",
			Level: script, Package: fast, Test: "^TestLateCommit$",
			Edits: []Edit{{sink, `
	s.tainted = s.retries.Load() > 0
`, `
	s.tainted = false
`}},
		},
		{
			Name: "no-taint-by-chance", Rule: "the same, found by schedules",
			Harm:  "the other copy commits half of the next transaction",
			Level: many, Package: fast, Test: "^TestSchedules$/^late$",
			Edits: []Edit{{sink, `
	s.tainted = s.retries.Load() > 0
`, `
	s.tainted = false
`}},
		},
		{
			Name: "taint-not-open", Rule: "the same is true of the opening's own record",
			Harm:  "the other copy commits half of the first transaction",
			Level: script, Package: fast, Test: "^TestLateCommit$",
			Edits: []Edit{{sink, `
		pos, found, err = s.openEpoch(ctx)
		if err`, `
		pos, found, err = s.openEpoch(ctx)
		s.tainted = false
		if err`}},
		},
		{
			Name: "abort-reuse", Rule: "after an abort the producer is thrown away",
			Harm:  "a copy of the abort takes the next transaction's rows with it, without an error",
			Level: script, Package: fast, Test: "^TestLateAbort$",
			Edits: []Edit{
				{sink, `
	"sync/atomic"
`, `
	"sync"
	"sync/atomic"
`},
				{sink, `
	_ = s.p.within(ctx, s.abortRaw) // the next opening aborts it if this did not
	s.p.stop()
`, `
	if s.p.within(ctx, s.p.async.AbortTxn) == nil {
		parked.Store(s.pub, s.p)
		s.p = nil
	} else {
		s.p.stop()
	}
`},
				{sink, `
	s.dead = true
	pos, found, err = s.takeOver(ctx)
`, `
	s.dead = true
	if p, ok := parked.LoadAndDelete(s.pub); ok {
		last, _ := lasts.Load(s.pub)
		s.dead, s.p, s.positions, s.parts = false, p.(*producer), positionWriter{session: uuid.NewString()}, newPartitions()
		return last.(position.Position), true, nil
	}
	pos, found, err = s.takeOver(ctx)
`},
				{sink, `
	s.last = b.Position
`, `
	lasts.Store(s.pub, b.Position)
	s.last = b.Position
`},
				{sink, `
// Open fences`, `
var parked, lasts sync.Map

// Open fences`},
			},
		},
		{
			Name: "position-first", Rule: "the position is sent when all rows are acknowledged, and a repeated commit is followed by a new epoch",
			Harm:  "a late commit takes the position along and leaves rows behind: they are lost",
			Level: many, Package: fast, Test: "^TestSchedules$/^late$",
			Edits: []Edit{
				{sink, `
	if err := s.sendAll(ctx, b.Groups, to); err != nil {
		return err
	}
	key, value, err := s.positions.next(time.Now(), b.Position, s.parts.trace())
	if err != nil {
		return err
	}
	return s.sendPosition(ctx, key, value)
`, `
	key, value, err := s.positions.next(time.Now(), b.Position, s.parts.trace())
	if err != nil {
		return err
	}
	if err := s.sendPosition(ctx, key, value); err != nil {
		return err
	}
	return s.sendAll(ctx, b.Groups, to)
`},
				{sink, `
	s.tainted = s.retries.Load() > 0
`, `
	s.tainted = false
`},
			},
		},
		{
			Name: "leftover-overlooked", Rule: "a partition gets records only when its leader says that nothing of ours is open there",
			Harm:  "the next commit takes aborted rows along, the next abort committed ones",
			Level: brokers, Package: "./kafka", Test: leaderless + "/by_its_time",
			Edits: []Edit{{sink, `
	if err := s.p.within(ctx, func() error { return s.settle(ctx, append(to.parts, s.positionPartition())) }); err != nil {
		return err
	}
`, `
`}},
		},
		{
			Name: "endings-forgotten", Rule: "a position record says where its batch's rows end, and the next leader closes them as they were",
			Harm:  "committed rows whose marker is missing are aborted",
			Level: brokers, Package: "./kafka", Test: leaderless + "/(a_committed|goes_elsewhere)",
			Edits: []Edit{{sink, `
	s.inherit(t)
	return`, `
	_ = t
	return`}},
		},
		{
			Name: "position-leftover", Rule: "the position's partition is looked at before the open record",
			Harm:  "the position of an aborted batch counts, and the batch is lost",
			Level: brokers, Package: "./kafka", Test: leaderless + "/the_position",
			Edits: []Edit{{sink, `
		if err := s.settle(ctx, []topicPartition{s.positionPartition()}); err != nil {
			return err
		}
		step("settle_position")
`, `
		step("settle_position")
`}},
		},
		{
			Name: "two-under-one-marker", Rule: "rows of two batches that can't be told apart stop the connector before the claim",
			Harm:  "the claim's own marker aborts committed rows",
			Level: brokers, Package: "./kafka", Test: leaderless + "/two_batches",
			Edits: []Edit{{"kafka/leftover.go", `
			if h.producer == state.ProducerID && judge(h, &e) != toAbort {
`, `
			if false && h.producer == state.ProducerID && judge(h, &e) != toAbort {
`}},
		},
		{
			Name: "blind-claim", Rule: "where nobody may read a topic, the claim waits for the leaders of what it aborts",
			Harm:  "aborted rows come without a word",
			Level: brokers, Package: "./kafka", Test: leaderless + "/nobody_may",
			Edits: []Edit{{"kafka/leftover.go", `
			if p.Leader < 0 && slices.Contains(wanted[t.Name], p.ID) {
`, `
			if false && p.Leader < 0 && slices.Contains(wanted[t.Name], p.ID) {
`}},
		},
		{
			Name: "claim-asked-for", Rule: "the id that a claim has brought is the one of its answer, not what the coordinator says later",
			Harm:  "a fenced opening aborts the next leader's transaction, whose rows are lost",
			Level: "an opening that stands still", Package: "./kafka", Test: "^TestFencedOpeningLeavesTheNextTransactionAlone$",
			Edits: []Edit{{"kafka/leftover.go", `
	id, ok := s.p.dialer.claimed()
`, `
	now, _, ok, _ := s.transaction()
	id := producerID{now.ProducerID, now.ProducerEpoch}
`}},
		},
		{
			Name: "sequence-blind", Rule: "an open transaction that goes on behind the committed rows is not committed with them",
			Harm:  "aborted rows come",
			Level: "all that a leader may say", Package: "./kafka", Test: "^TestJudgeOpenTransaction$",
			Edits: []Edit{{"kafka/ending.go", ` && h.sequence == e.sequence:
`, `:
`}},
		},
		{
			Name: "parts-of-all-tables", Rule: "what is published of a transaction is counted by table",
			Harm:  "with other tables, rows are lost or come twice",
			Level: "simulated terms", Package: "./connector", Test: "^TestPartsOfAnotherConfiguration$",
			Edits: []Edit{{"connector/count.go", `
		c.at = c.find(kindOf(row))
`, `
		c.at = c.find(position.Kind{Op: opNames[row.Op]})
`}},
		},
		{
			Name: "endless-dial", Rule: "a dial has a deadline",
			Harm:  "a host that swallows packets holds up everything for minutes",
			Level: "a network that swallows packets", Package: "./canal", Test: "^TestConnectTimeoutBoundsTheDial$",
			Edits: []Edit{{"canal/conn.go", `
	ctx, end := d.within(ctx, timeout)
	defer end()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	nc, err`, `
	ctx, end := d.within(ctx, 1000*timeout)
	defer end()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	nc, err`}},
		},
		{
			Name: "strangers-share", Rule: "the address that has the most places of those that have not said who they are makes room for others",
			Harm:  "a stranger without any certificate cuts a node off",
			Level: "real connections", Package: "./ha", Test: "^TestStrangersDoNotCutANodeOff$",
			Edits: []Edit{{"ha/waiting.go", `
		if most == addr {
`, `
		if true {
`}},
		},
		{
			Name: "stop-without-drain", Rule: "at an orderly stop the leadership lasts until all that was read is published and saved",
			Harm:  "at least once: each restart repeats rows",
			Level: "one node", Package: "./ha", Test: "^TestLeadLetsWorkEndInOrder$",
			Edits: []Edit{{"ha/lead.go", `
		err = n.leadOnce(l, f)
`, `
		err = n.leadOnce(l, func(leadership context.Context, term uint64) error {
			leadership, end := both(leadership, ctx)
			defer end()
			return f(leadership, term)
		})
`}},
		},
		{
			Name: "broken-disk-goes-on", Rule: "a node that can't store any more ends",
			Harm:  "it leads, or votes, with what it has forgotten after a restart",
			Level: "three nodes in one process", Package: "./node", Test: "^TestABrokenDisk$",
			Edits: []Edit{{"ha/logstore.go", `
	if first {
		s.onFailure(err)
	}
`, `
`}},
		},
		{
			Name: "phantoms-not-asked", Rule: "transactions that are accepted as lost are asked for",
			Harm:  "a server that gives their numbers to others loses those",
			Level: "scripted server", Package: "./canal", Test: "^TestF15LostTransactionsAreAskedFor$",
			Edits: []Edit{{"canal/check.go", `
	if gone = gone.Intersect(p.from.Set); !gone.IsEmpty() {
`, `
	if gone = gone.Intersect(p.from.Set); false {
`}},
		},
		{
			Name: "sequence-goes-back", Rule: "whichever position counts, no number of a published row is given again",
			Harm:  "consumers drop new rows as repetitions",
			Level: "simulated terms", Package: "./connector", Test: "^TestReconcileKeepsTheLargerNumber$",
			Edits: []Edit{{"connector/session.go", `
	stored.Seq = max(stored.Seq, sunk.Seq)
	sunk.Seq = stored.Seq
`, `
`}},
		},
		{
			Name: "late-first-save", Rule: "with at-least-once delivery the second batch waits for the first save",
			Harm:  "a process that dies soon, again and again, never gets on",
			Level: "simulated terms", Package: "./connector", Test: "^TestSecondBatchWaitsForTheFirstSave$",
			Edits: []Edit{{"connector/session.go", `
		t.saver.awaitFirst(ctx) //`, `
		//`}},
		},
	}
}
