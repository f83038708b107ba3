package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// forgetful has a cluster say that transactions are open in partitions, as Kafka does
// after it has ended them without a marker, until one is written there.
type forgetful struct {
	mu     sync.Mutex
	open   map[string]kmsg.DescribeProducersResponseTopicPartitionActiveProducer
	denied map[string]int16 // topic to the error for whoever asks
	joined []string
	ended  map[string]bool // to whether it was committed
	last   int16           // the epoch under which one was ended
	asked  int
}

func place(topic string, partition int32) string { return fmt.Sprint(topic, "-", partition) }

func forget(c *kafkatest.Cluster) *forgetful {
	f := &forgetful{open: map[string]kmsg.DescribeProducersResponseTopicPartitionActiveProducer{},
		denied: map[string]int16{}, ended: map[string]bool{}}
	c.ControlKey(int16(kmsg.DescribeProducers), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return f.describe(r.(*kmsg.DescribeProducersRequest)), nil, true
	})
	c.ControlKey(int16(kmsg.AddPartitionsToTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, topic := range r.(*kmsg.AddPartitionsToTxnRequest).Topics {
			for _, id := range topic.Partitions {
				f.joined = append(f.joined, place(topic.Topic, id))
			}
		}
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, at := range f.joined {
			if _, ok := f.open[at]; ok {
				delete(f.open, at)
				f.ended[at], f.last = r.(*kmsg.EndTxnRequest).Commit, r.(*kmsg.EndTxnRequest).ProducerEpoch
			}
		}
		f.joined = nil
		return nil, nil, false
	})
	return f
}

func (f *forgetful) describe(r *kmsg.DescribeProducersRequest) kmsg.Response {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	resp := r.ResponseKind().(*kmsg.DescribeProducersResponse)
	for _, t := range r.Topics {
		topic := kmsg.NewDescribeProducersResponseTopic()
		topic.Topic = t.Topic
		for _, id := range t.Partitions {
			p := kmsg.NewDescribeProducersResponseTopicPartition()
			p.Partition, p.ErrorCode = id, f.denied[t.Topic]
			if a, ok := f.open[place(t.Topic, id)]; ok {
				p.ActiveProducers = append(p.ActiveProducers, a)
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp
}

// hang leaves a transaction of s open that begins at an offset and ends with the record
// of a sequence.
func (f *forgetful) hang(s *kafka.ExactlyOnce, topic string, partition int32, start int64, sequence int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
	producer, epoch := kafka.Identity(s)
	a.ProducerID, a.ProducerEpoch, a.LastSequence, a.CurrentTxnStartOffset = producer, int32(epoch), sequence, start
	f.open[place(topic, partition)] = a
}

func (f *forgetful) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *forgetful) deny(topic string, err *kerr.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied[topic] = err.Code
}

func (f *forgetful) want(t *testing.T, topic string, partition int32, commit bool) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got, ok := f.ended[place(topic, partition)]; !ok || got != commit {
		t.Errorf("%s partition %d: ended %v, committed %v, want committed %v", topic, partition, ok, got, commit)
	}
}

// spread commits a batch with one record in each of n partitions.
func spread(t *testing.T, s *kafka.ExactlyOnce, b *batcher, n int) {
	t.Helper()
	batch := b.next(1, n)
	for i := range batch.Groups[0].Records {
		batch.Groups[0].Records[i].Partition = int32(i)
	}
	commit(t, s, batch)
}

// Several partitions of one broker need a decision: each gets its own, one after the
// other, and what is known elsewhere is ended whatever waits.
func TestSettleOneOfSeveral(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 3, nil)
	pub := publisher(t, config(c.Brokers()))
	f := forget(c)
	s, _, _ := reopen(t, pub)
	spread(t, s, newBatcher(topic), 3)
	f.hang(s, topic, 0, 0, 99) // behind the committed record stands more
	f.hang(s, topic, 1, 0, 99)
	f.hang(s, topic, 2, 0, 0) // ends with the committed record
	stuck := func(partition int32) {
		t.Helper()
		two := pub.ExactlyOnce(2)
		_, _, err := two.Open(t.Context())
		closeSink(t, two)
		if e := wantError(t, err, kafka.TransactionHanging, false); e.Partition != partition ||
			!strings.Contains(e.Text, fmt.Sprintf("settle orders orders %d commit", partition)) {
			t.Fatalf("the error says %v", e)
		}
	}
	settle := func(partition int32, commit, want bool) {
		t.Helper()
		if found, err := pub.Settle(t.Context(), topic, partition, commit); err != nil || found != want {
			t.Fatalf("Settle = %v, %v, want %v", found, err, want)
		}
	}
	stuck(0)
	f.want(t, topic, 2, true)
	settle(1, false, true)
	f.want(t, topic, 1, false)
	stuck(0)
	settle(0, true, true)
	f.want(t, topic, 0, true)
	settle(0, true, false)
	reopen(t, pub)
}

// Who chooses for a partition of which all is known changes nothing.
func TestSettleDoesNotOverruleWhatIsKnown(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	f := forget(c)
	s, _, _ := reopen(t, pub)
	spread(t, s, newBatcher(topic), 1)
	f.hang(s, topic, 0, 0, 0)
	if found, err := pub.Settle(t.Context(), topic, 0, false); err != nil || found {
		t.Fatalf("Settle = %v, %v", found, err)
	}
	f.want(t, topic, 0, true)
}

// A decision is asked for a partition of which none is wanted while a leader is in the
// middle of a batch: half a batch is not committed.
func TestSettleCommitsNoHalfBatch(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	batches := newBatcher(topic)
	first := batches.next(1, 1)
	commit(t, s, first)
	kafka.LeaveRecordsOpen(t, s, batches.next(1, 1))
	if found, err := pub.Settle(t.Context(), topic, 0, true); err != nil || found {
		t.Fatalf("Settle = %v, %v", found, err)
	}
	wantExactlyInOrder(t, c.Records(topic), batchValues(first))
}

func TestSettleOfWhatIsNotThere(t *testing.T) {
	c := kafkatest.Start(t)
	c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	for _, at := range []struct {
		topic     string
		partition int32
	}{{"orders", 0}, {"orders", 7}, {"none", 0}} {
		if found, err := pub.Settle(t.Context(), at.topic, at.partition, true); err != nil || found {
			t.Errorf("%v: Settle = %v, %v", at, found, err)
		}
	}
}

// What the position record says beside the position must not keep it from being written.
func TestPositionNamesAsManyPartitionsAsThereIsRoomFor(t *testing.T) {
	const limit, partitions = 3000, 400
	c := kafkatest.Start(t)
	c.Topic(positionTopic, 1, map[string]string{"cleanup.policy": "compact", "max.message.bytes": fmt.Sprint(limit)})
	topic := c.Topic("orders", partitions, nil)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	spread(t, s, newBatcher(topic), partitions)
	recs := c.Records(positionTopic)
	last := string(recs[len(recs)-1].Value)
	if len(last) > limit || !strings.Contains(last, `"unnamed":true`) || !strings.Contains(last, `"orders":[[`) {
		t.Errorf("the position has %d bytes: %.200s", len(last), last)
	}
}

// A topic that may not be read is told, and where its records end is not forgotten, so
// that whoever may read it later knows what was committed.
func TestUnseenTopicStaysNamed(t *testing.T) {
	for _, why := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.UnsupportedVersion} {
		t.Run(why.Message, func(t *testing.T) {
			c := kafkatest.Start(t)
			topic, other := c.Topic("orders", 1, nil), c.Topic("other", 1, nil)
			pub := publisher(t, config(c.Brokers()))
			f := forget(c)
			f.deny(topic, why)
			s, _, _ := reopen(t, pub)
			batches := newBatcher(topic)
			commit(t, s, batches.next(1, 1))
			batches.topic = other
			commit(t, s, batches.next(1, 1))
			s, _, _ = reopen(t, pub)
			commit(t, s, batches.next(1, 1))
			if got := pub.Unseen(); len(got) != 0 && got[0] != topic {
				t.Errorf("unseen is %q", got)
			}
			recs := c.Records(positionTopic)
			if last := string(recs[len(recs)-1].Value); !strings.Contains(last, `"orders":[[0,0,0]]`) {
				t.Errorf("the position says %s", last)
			}
		})
	}
}

// The position of an aborted batch names an earlier batch's partition, whose marker says
// commit. That is no word about this one.
func TestPositionIsJudgedByItsOwnBatch(t *testing.T) {
	c := kafkatest.Start(t)
	a, b := c.Topic("a", 1, nil), c.Topic("b", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	batches := newBatcher(a)
	commit(t, s, batches.next(1, 1))
	batches.topic = b
	kafka.Pend(s, a, 0, 0)
	producer, epoch := kafka.Identity(s)
	kafka.LeaveTransactionOpen(t, s, batches.next(1, 1))
	two, _, _ := reopen(t, pub) // aborts it
	all := c.AllRecords(positionTopic)
	start := int64(-1)
	for _, r := range all {
		if strings.Contains(string(r.Value), `"earlier":true`) {
			start = r.Offset
		}
	}
	if commit, decided := kafka.WouldCommit(t, two, producer, epoch, start); commit || !decided {
		t.Errorf("commit %v, decided %v", commit, decided)
	}
}

// The outbox is idle, and the last batch is hidden since its marker is missing.
func TestIdleSinkWritesMissingMarkers(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	f := forget(c)
	s, _, _ := reopen(t, publisher(t, config(c.Brokers())))
	spread(t, s, newBatcher(topic), 1)
	f.hang(s, topic, 0, 0, 0)
	if err := s.Tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want(t, topic, 0, true)
	asked := f.times()
	if err := s.Tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.times(); n != asked {
		t.Errorf("asked %d more times, though all markers are there", n-asked)
	}
	closeSink(t, s)
	wantError(t, s.Tend(t.Context()), kafka.SinkClosed, true)
}

// A commit of the open record had to be repeated, so a copy may be under way: under that
// epoch nothing is aborted, or the copy would commit it.
func TestNothingIsEndedUnderATaintedEpoch(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	f := forget(c)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	spread(t, s, newBatcher(topic), 1)
	f.hang(s, topic, 0, 1, 1) // begins behind what was committed
	epochs := countInit(c)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress})
	s, _, _ = reopen(t, pub)
	f.want(t, topic, 0, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, epoch := kafka.Identity(s)
	if n := epochs(); n != 2 || f.last != epoch {
		t.Errorf("%d epochs, the leftover was ended under epoch %d, want %d", n, f.last, epoch)
	}
}

// The coordinator never comes to the end of the last transaction: the opening says so
// instead of asking for ever.
func TestOpeningDoesNotWaitForMarkersForEver(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	f := forget(c)
	s, _, _ := reopen(t, pub)
	spread(t, s, newBatcher(topic), 1)
	f.hang(s, topic, 0, 0, 0)
	c.ControlKey(int16(kmsg.AddPartitionsToTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		req := r.(*kmsg.AddPartitionsToTxnRequest)
		if len(req.Topics) != 1 || req.Topics[0].Topic != topic {
			return nil, nil, false
		}
		c.KeepControl()
		resp := r.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
		resp.Topics = []kmsg.AddPartitionsToTxnResponseTopic{{Topic: topic,
			Partitions: []kmsg.AddPartitionsToTxnResponseTopicPartition{{ErrorCode: kerr.ConcurrentTransactions.Code}}}}
		return resp, nil, true
	})
	kafka.WaitForMarkers(pub, 300*time.Millisecond)
	two := pub.ExactlyOnce(2)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, _, err := two.Open(ctx)
	closeSink(t, two)
	wantError(t, err, kafka.Unavailable, true)
}
