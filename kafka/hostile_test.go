package kafka_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// addPartitions raises the number of a topic's partitions.
func addPartitions(t *testing.T, c *kafkatest.Cluster, topic string, n int32) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 5000
	req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: topic, Count: n}}
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// A partition that was added while the sink is open can be asked for at once: the
// client's own knowledge of the topic is minutes old.
func TestPartitionsAddedMeanwhileAreFound(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		batches := newBatcher(topic)
		commit(t, s, batches.next(1, 1))
		addPartitions(t, c, topic, 6)
		b := batches.next(1, 1)
		all(b)[0].Partition = 5
		commit(t, s, b)
		recs := c.Records(topic)
		if last := recs[len(recs)-1]; last.Partition != 5 {
			t.Errorf("the record is in partition %d", last.Partition)
		}
	})
}

// Rows choose topics, but no row may write into the topic that says where to go on.
func TestPositionTopicIsNoTopicForRows(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		s := open(t, d.make(publisher(t, config(c.Brokers()))))
		_, err := s.Commit(t.Context(), newBatcher(positionTopic).next(1, 1))
		if e := wantError(t, err, kafka.TopicInvalid, false); e.Topic != positionTopic || e.Group != 0 {
			t.Errorf("%v names topic %q and group %d", err, e.Topic, e.Group)
		}
	}, kfake.AllowAutoTopicCreation())
}

// A topic's name that is no text is refused like any other bad name; Prometheus
// panics when it gets one as a label.
func TestTopicThatIsNoText(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		pub, err := kafka.NewPublisher(config(c.Brokers()), slog.New(slog.DiscardHandler),
			kafka.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, d.make(pub))
		_, err = s.Commit(t.Context(), newBatcher("or\xffders").next(1, 1))
		wantError(t, err, kafka.TopicInvalid, false)
	})
}

// Brokers that are still to come are waited for when a topic is to be created with
// more replicas than there are brokers.
func TestB062TooFewBrokersAreWaitedFor(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Err: kerr.InvalidReplicationFactor, Count: 1})
	pub := publisher(t, config(c.Brokers()))
	s := pub.ExactlyOnce(1)
	_, _, err := s.Open(t.Context())
	if e := wantError(t, err, kafka.Unavailable, true); e.Topic != positionTopic ||
		!strings.Contains(err.Error(), "brokers") {
		t.Errorf("%v does not say what is missing", err)
	}
	closeSink(t, s)
	s, _, _ = reopen(t, pub)
	commit(t, s, newBatcher(topic).next(1, 1))
}

// When the position can't be written, no transaction is to blame.
func TestRefusedPositionBlamesNoTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		err   *kerr.Error
		code  kafka.Code
		retry bool
	}{
		"clock":     {kerr.InvalidTimestamp, kafka.RecordInvalid, true},
		"too large": {kerr.MessageTooLarge, kafka.RecordTooLarge, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := kafkatest.Start(t)
			topic := cluster.Topic("orders", 1, nil)
			s, _, _ := reopen(t, publisher(t, config(cluster.Brokers())))
			cluster.FailProduce(positionTopic, -1, c.err)
			_, err := s.Commit(t.Context(), newBatcher(topic).next(2, 1))
			if e := wantError(t, err, c.code, c.retry); e.Group != -1 || e.Topic != positionTopic {
				t.Errorf("%v blames group %d of topic %q", err, e.Group, e.Topic)
			}
		})
	}
}

// More partitions send keys elsewhere, and that is said once, also when it happened
// between two sessions (F33).
func TestF33MorePartitionsAreTold(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		topic := c.Topic("orders", 3, nil)
		var log bytes.Buffer
		pub, err := kafka.NewPublisher(config(c.Brokers()), slog.New(slog.NewTextHandler(&log, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		batches := newBatcher(topic)
		for _, n := range []int32{0, 6, 0} {
			if n > 0 {
				addPartitions(t, c, topic, n)
			}
			s := d.make(pub)
			if _, _, err := s.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			commit(t, s, batches.next(1, 1))
			commit(t, s, batches.next(1, 1))
			closeSink(t, s)
		}
		if n := strings.Count(log.String(), "partitions=6 before=3"); n != 1 {
			t.Errorf("it is told %d times:\n%s", n, log.String())
		}
	})
}
