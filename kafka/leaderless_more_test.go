package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/kafka"
)

// A batch was committed without its marker. The next one goes to another topic, and its
// position still says where the first one ends.
func (l leaderless) elsewhere(t *testing.T) {
	pub, victim, coordinator := l.prepare(t, "elsewhere")
	if err := l.Brokers[0].CreateTopic("healthy", 1, nil); err == nil {
		l.await(t, coordinator, "healthy", true)
	}
	batches := newBatcher("elsewhere")
	one, _, _ := reopen(t, pub)
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1))
	l.down(t, victim, coordinator, "elsewhere")
	if err := kafka.CommitOpenTransaction(t, one); err != nil {
		t.Fatal(err)
	}
	batches.topic = "healthy"
	second := batches.next(1, 1)
	commit(t, one, second) // does not wait for the other partition
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1))
	batches.seq--
	l.up(t, victim, coordinator, "elsewhere")
	two, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, second.Position)
	l.want(t, "elsewhere", "[1/0]")
	batches.topic = "elsewhere"
	commit(t, two, batches.next(1, 1))
	closeSink(t, two)
	l.want(t, "elsewhere", "[1/0 3/0]")
	l.want(t, "healthy", "[2/0]")
}

func (l leaderless) living(t *testing.T) {
	pub, victim, coordinator := l.prepare(t, "living")
	batches := newBatcher("living")
	one, _, _ := reopen(t, pub)
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1))
	l.down(t, victim, coordinator, "living")
	if err := kafka.CommitOpenTransaction(t, one); err != nil {
		t.Fatal(err)
	}
	l.up(t, victim, coordinator, "living")
	second := batches.next(1, 1)
	commit(t, one, second)
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1)) // its leader dies here
	two, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, second.Position)
	closeSink(t, two)
	l.want(t, "living", "[1/0 2/0]")
}

// The coordinator has aborted by itself and knows nothing of it any longer. Where
// nothing was committed before, no position record names the partition either.
func (l leaderless) timeout(t *testing.T, topic string, committed int, want string) {
	cfg := config(l.Addrs())
	cfg.Connector, cfg.TransactionTimeout = topic, 8*time.Second
	pub, victim, coordinator := l.prepareWith(t, cfg)
	batches := newBatcher(topic)
	one, before, _ := reopen(t, pub)
	for range committed {
		kept := batches.next(1, 1)
		commit(t, one, kept)
		before = kept.Position
	}
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1)) // its leader dies here
	batches.seq--
	l.down(t, victim, coordinator, topic)
	l.awaitState(t, coordinator, cfg.TransactionalID(), "CompleteAbort")
	l.up(t, victim, coordinator, topic)
	two, pos, found := reopen(t, pub)
	if committed > 0 {
		wantPosition(t, pos, found, before)
	}
	commit(t, two, batches.next(1, 1))
	closeSink(t, two)
	l.want(t, topic, want)
}

// A leader that did not look has put two batches under one marker. Only an
// administrator can decide.
func (l leaderless) together(t *testing.T, topic string, wantCommit bool, want string) {
	pub, victim, coordinator := l.prepare(t, topic)
	batches := newBatcher(topic)
	one, _, _ := reopen(t, pub)
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1))
	l.down(t, victim, coordinator, topic)
	if err := kafka.CommitOpenTransaction(t, one); err != nil {
		t.Fatal(err)
	}
	l.up(t, victim, coordinator, topic)
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1))
	s := pub.ExactlyOnce(2)
	_, _, err := s.Open(t.Context())
	e := wantError(t, err, kafka.TransactionHanging, false)
	closeSink(t, s)
	if e.Topic != topic || e.Partition != 0 || !strings.Contains(e.Text, "settle "+topic) {
		t.Errorf("the error says %v", e)
	}
	found, err := pub.Settle(t.Context(), topic, 0, wantCommit)
	if err != nil || !found {
		t.Fatalf("Settle = %v, %v", found, err)
	}
	two, pos, _ := reopen(t, pub)
	batches.seq, batches.set = pos.Last.Seq, pos.Set
	if batches.seq < 2 {
		commit(t, two, batches.next(1, 1))
	}
	closeSink(t, two)
	l.want(t, topic, want)
	if found, err := pub.Settle(t.Context(), topic, 0, wantCommit); err != nil || found {
		t.Errorf("Settle of nothing = %v, %v", found, err)
	}
}

// Without the right READ it is told, and the next leader waits.
func (l leaderless) blind(t *testing.T) {
	admin, err := l.Brokers[0].Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var secure []string
	for _, b := range l.Brokers {
		secure = append(secure, b.ListenerAddr("SECURE"))
	}
	cfg := config(secure)
	cfg.Connector = "blind"
	cfg.SASL = &kafka.SASL{Mechanism: "PLAIN", Credentials: func(
		context.Context,
	) (string, string, error) {
		return "outbox", "secret", nil
	}}
	allow := func(kind sarama.AclResourceType, name string, ops ...sarama.AclOperation) {
		var acls []*sarama.Acl
		for _, op := range ops {
			acls = append(acls, &sarama.Acl{Principal: "User:outbox", Host: "*", Operation: op,
				PermissionType: sarama.AclPermissionAllow})
		}
		resource := sarama.Resource{ResourceType: kind, ResourceName: name, ResourcePatternType: sarama.AclPatternLiteral}
		if err := admin.CreateACLs([]*sarama.ResourceAcls{{Resource: resource, Acls: acls}}); err != nil {
			t.Fatal(err)
		}
	}
	allow(sarama.AclResourceTopic, cfg.PositionTopic(), sarama.AclOperationRead, sarama.AclOperationWrite,
		sarama.AclOperationCreate)
	allow(sarama.AclResourceTransactionalID, cfg.TransactionalID(), sarama.AclOperationWrite)
	allow(sarama.AclResourceTopic, "blind", sarama.AclOperationWrite)
	pub, victim, coordinator := l.prepareWith(t, cfg)
	batches := newBatcher("blind")
	one, _, _ := reopen(t, pub)
	kept := batches.next(1, 1)
	commit(t, one, kept)
	if got := pub.Unseen(); len(got) != 1 || got[0] != "blind" {
		t.Errorf("unseen is %q", got)
	}
	warned := false
	for _, f := range kafka.Probe(t.Context(), cfg, true, []string{"blind"}) {
		warned = warned || f.Level == kafka.Warning && strings.Contains(f.Text, "no right READ")
	}
	if !warned {
		t.Error("the probe does not tell")
	}
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1)) // its leader dies here
	batches.seq--
	l.down(t, victim, coordinator, "blind")
	s := pub.ExactlyOnce(2)
	_, _, err = s.Open(t.Context())
	e := wantError(t, err, kafka.Unavailable, true)
	closeSink(t, s)
	if e.Topic != "blind" || !strings.Contains(e.Text, "READ") {
		t.Errorf("the error says %v", e)
	}
	l.up(t, victim, coordinator, "blind")
	two, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, kept.Position)
	commit(t, two, batches.next(1, 1))
	closeSink(t, two)
	l.want(t, "blind", "[1/0 2/0]")
}

// Kafka has forgotten the transactional id and with it who could end what is open.
func TestRealLeftoverOfAnExpiredProducerID(t *testing.T) {
	l := startLeaderless(t, "transactional.id.expiration.ms=10000",
		"transaction.remove.expired.transaction.cleanup.interval.ms=500")
	cfg := config(l.Addrs())
	cfg.Connector, cfg.TransactionTimeout = "expired", 8*time.Second
	pub, victim, coordinator := l.prepareWith(t, cfg)
	batches := newBatcher("expired")
	one, _, _ := reopen(t, pub)
	commit(t, one, batches.next(1, 1))
	kafka.LeaveTransactionOpen(t, one, batches.next(1, 1)) // its leader dies here
	l.down(t, victim, coordinator, "expired")
	l.awaitState(t, coordinator, cfg.TransactionalID(), "CompleteAbort")
	l.awaitState(t, coordinator, cfg.TransactionalID(), "")
	l.up(t, victim, coordinator, "expired")
	two := pub.ExactlyOnce(2)
	_, _, err := two.Open(t.Context())
	closeSink(t, two)
	e := wantError(t, err, kafka.TransactionHanging, false)
	if e.Topic != "expired" || !strings.Contains(e.Text, "kafka-transactions.sh") {
		t.Errorf("the error says %v", e)
	}
}
