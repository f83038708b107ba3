package kafka_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// What is refused for good is blamed on one record; what may pass, or is refused of
// several at once, on none.
func TestPoisonNamesTheRecord(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(r *txn.Record)
		code  kafka.Code
		known bool // by Check
	}{
		"topic name":       {func(r *txn.Record) { r.Topic = "no spaces" }, kafka.TopicInvalid, true},
		"position topic":   {func(r *txn.Record) { r.Topic = "binlog-outbox.orders.position" }, kafka.TopicInvalid, true},
		"client's limit":   {func(r *txn.Record) { r.Value = make([]byte, 20_000) }, kafka.RecordTooLarge, true},
		"topic's limit":    {func(r *txn.Record) { r.Value = make([]byte, 6_000) }, kafka.RecordTooLarge, false},
		"partition":        {func(r *txn.Record) { r.Partition = 7 }, kafka.PartitionOutOfRange, false},
		"nothing is wrong": {func(*txn.Record) {}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
				topic := c.Topic("orders", 1, map[string]string{"max.message.bytes": "5000"})
				cfg := config(c.Brokers())
				cfg.MaxMessageBytes = 10_000
				pub := publisher(t, cfg)
				b := newBatcher(topic).next(3, 3)
				test.spoil(all(b)[4])
				for i, r := range all(b) {
					err := pub.Check(r)
					if (err != nil) != (test.known && i == 4) {
						t.Errorf("Check of record %d: %v", i, err)
					}
				}
				_, err := open(t, d.make(pub)).Commit(t.Context(), b)
				if test.code == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if e := wantError(t, err, test.code, false); !e.Poison || e.Record != 1 || e.Group != 1 {
					t.Errorf("poison %v, record %d, group %d, want record 1 of group 1: %v", e.Poison, e.Record, e.Group, err)
				}
			})
		})
	}
}

// A missing right and settings that no topic can have are nobody's record's fault.
func TestOutagesAreNoPoison(t *testing.T) {
	for name, test := range map[string]struct {
		set func(c *kafkatest.Cluster, cfg *kafka.Config)
	}{
		"no right": {func(c *kafkatest.Cluster, _ *kafka.Config) {
			c.FailProduce(c.Topic("orders", 1, nil), -1, kerr.TopicAuthorizationFailed)
		}},
		"creation settings": {func(_ *kafkatest.Cluster, cfg *kafka.Config) {
			cfg.Topics = kafka.TopicCreation{Create: true, Partitions: 1, Replication: 99}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conform(t, func(t *testing.T, c *kafkatest.Cluster, d delivery) {
				cfg := config(c.Brokers())
				test.set(c, &cfg)
				_, err := open(t, d.make(publisher(t, cfg))).Commit(t.Context(), newBatcher("orders").next(2, 2))
				var e *kafka.Error
				if !errors.As(err, &e) || e.Poison {
					t.Errorf("error %v, poison %v", err, e != nil && e.Poison)
				}
			})
		})
	}
}

// A broker that refuses a batch for one of its records does not say which. It is
// found by sending them one by one, and the others are not blamed.
func (b broker) invalid(t *testing.T) {
	for name, exactly := range map[string]bool{"at least once": false, "exactly once": true} {
		t.Run(name, func(t *testing.T) {
			topic := b.topic(t, "compacted-"+strings.ReplaceAll(name, " ", "-"), 1,
				map[string]string{"cleanup.policy": "compact"})
			pub := b.publisher(t, "invalid-"+strings.ReplaceAll(name, " ", "-"))
			batch := newBatcher(topic).next(4, 5)
			all(batch)[13].Key = nil
			attempt := func() error {
				var s sink = pub.AtLeastOnce()
				if exactly {
					s = pub.ExactlyOnce(1)
				}
				_, err := open(t, s).Commit(t.Context(), batch)
				return err
			}
			if e := wantError(t, attempt(), kafka.RecordInvalid, true); e.Poison || e.Group != -1 {
				t.Errorf("an innocent record may be blamed: %+v", e)
			}
			if e := wantError(t, attempt(), kafka.RecordInvalid, false); !e.Poison || e.Record != 3 || e.Group != 2 {
				t.Errorf("poison %v, record %d, group %d, want record 3 of group 2", e.Poison, e.Record, e.Group)
			}
			all(batch)[13].Key = []byte("k")
			if err := attempt(); err != nil {
				t.Error(err)
			}
		})
	}
}
