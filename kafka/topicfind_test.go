package kafka_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// scattered is a batch of one transaction that has a record for each of n topics.
func scattered(n int) *txn.Batch {
	b := newBatcher("").next(1, n)
	for i, r := range all(b) {
		r.Topic = fmt.Sprintf("topic-%04d", i)
	}
	return b
}

// askedFor counts requests by their key. Each takes a while, as over a network.
func askedFor(c *kafkatest.Cluster, takes time.Duration, keys ...kmsg.Key) map[kmsg.Key]*atomic.Int32 {
	counts := map[kmsg.Key]*atomic.Int32{}
	for _, key := range keys {
		n := &atomic.Int32{}
		counts[key] = n
		c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			n.Add(1)
			time.Sleep(takes)
			return nil, nil, false
		})
	}
	return counts
}

// A transaction with thousands of new topics needs a request for many of them, not for
// each; that takes longer than its Kafka transaction may, before which it is done.
func TestManyNewTopics(t *testing.T) {
	const n = 1000
	for _, makes := range []string{"the connector", "the brokers", "nobody"} {
		t.Run(makes, func(t *testing.T) {
			conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
				cfg := config(c.Brokers())
				cfg.TransactionTimeout = 3500 * time.Millisecond
				cfg.Topics.Create, cfg.Topics.AutoCreate = makes == "the connector", makes == "the brokers"
				batch := scattered(n)
				if makes == "nobody" {
					for _, r := range all(batch) {
						c.Topic(r.Topic, 1, nil)
					}
				}
				s := open(t, d.make(publisher(t, cfg)))
				asked := askedFor(c, 5*time.Millisecond, kmsg.Metadata, kmsg.DescribeConfigs, kmsg.CreateTopics)
				commit(t, s, batch)
				for key, count := range asked {
					if got := count.Load(); got > n/5 {
						t.Errorf("%d requests %s for %d topics", got, key.Name(), n)
					}
				}
			}, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(1))
		})
	}
}

// What the controller finds too much at once, it gets in parts; what it refuses by itself
// is told alone.
func TestTopicsAreMadeInParts(t *testing.T) {
	c := kafkatest.Start(t)
	cfg := config(c.Brokers())
	cfg.Topics.Create = true
	requests, failed := 0, ""
	c.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		requests++
		req := r.(*kmsg.CreateTopicsRequest)
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		for _, rt := range req.Topics {
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic = rt.Topic
			if len(req.Topics) > 7 || rt.Topic == failed {
				topic.ErrorCode = kerr.PolicyViolation.Code
			}
			resp.Topics = append(resp.Topics, topic)
		}
		if len(req.Topics) > 7 || failed != "" {
			return resp, nil, true
		}
		return nil, nil, false
	})
	commit(t, open(t, publisher(t, cfg).AtLeastOnce()), scattered(50))
	if requests > 15 {
		t.Errorf("%d requests for 50 topics", requests)
	}

	failed = "refused"
	b := newBatcher("topic-0001").next(2, 1)
	all(b)[1].Topic = failed
	done, err := open(t, publisher(t, cfg).AtLeastOnce()).Commit(t.Context(), b)
	if e := wantError(t, err, kafka.TopicInvalid, false); e.Topic != failed || done != 1 {
		t.Errorf("%d groups are done, and %v", done, err)
	}
}

// A quota for the controller's work ends the session, and each goes on where the last one
// had to stop; so does a controller that moves.
func TestTopicsAreMadeOverSessions(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		cfg := config(c.Brokers())
		cfg.Topics.Create = true
		pub, batch := publisher(t, cfg), scattered(30)
		left, moved := 0, false
		c.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			req := r.(*kmsg.CreateTopicsRequest)
			resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
			for i, rt := range req.Topics {
				topic := kmsg.NewCreateTopicsResponseTopic()
				topic.Topic = rt.Topic
				switch {
				case !moved:
					topic.ErrorCode = kerr.NotController.Code
				case i < left:
					if err := c.CreateTopic(rt.Topic, 1, nil); err != nil {
						t.Error(err)
					}
				default:
					topic.ErrorCode = kerr.ThrottlingQuotaExceeded.Code
				}
				resp.Topics = append(resp.Topics, topic)
			}
			moved = true
			return resp, nil, true
		})
		if !d.partial {
			c.Topic(positionTopic, 1, map[string]string{"cleanup.policy": "compact"})
		}
		left = 12
		for term := 1; ; term++ {
			_, err := open(t, d.make(pub)).Commit(t.Context(), batch)
			if err == nil {
				if term != 3 {
					t.Errorf("it took %d sessions", term)
				}
				return
			}
			if e := wantError(t, err, kafka.Unavailable, true); !strings.Contains(e.Text, "quota") {
				t.Errorf("the error does not speak of a quota: %v", err)
			}
			if term == 5 {
				t.Fatal("it never ends")
			}
		}
	})
}

// Of many topics that are new only the one is waited for that is not there.
func TestOneOfManyTopicsIsMissing(t *testing.T) {
	conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
		b := newBatcher("").next(20, 1)
		for i, r := range all(b) {
			r.Topic = fmt.Sprintf("topic-%02d", i)
			if i != 11 {
				c.Topic(r.Topic, 1, nil)
			}
		}
		done, err := open(t, d.make(publisher(t, config(c.Brokers())))).Commit(t.Context(), b)
		if e := wantError(t, err, kafka.TopicMissing, true); e.Topic != "topic-11" || e.Group != 11 {
			t.Errorf("error = %v, in group %d", err, e.Group)
		}
		if d.partial && done != 11 {
			t.Errorf("%d groups are done, want those before the one that waits", done)
		}
	})
}

// The same with real brokers, which take their time to make a topic.
func TestRealManyNewTopics(t *testing.T) {
	k := servers.KafkaForTest(t, servers.KafkaOptions{Own: true})
	b := broker{k, kafkatest.Reader{Brokers: []string{k.Addr()}}}
	cfg := config([]string{k.Addr()})
	cfg.Topics = kafka.TopicCreation{Create: true, Partitions: 1, Replication: 1}
	batch := scattered(500)
	s, _, _ := reopen(t, publisher(t, cfg))
	begin := time.Now()
	commit(t, s, batch)
	t.Logf("%d new topics took %s", len(all(batch)), time.Since(begin))
	for _, i := range []int{0, 250, 499} {
		if got := b.records(t, all(batch)[i].Topic); len(got) != 1 {
			t.Errorf("%d records in %s", len(got), all(batch)[i].Topic)
		}
	}
}
