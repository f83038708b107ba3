package kafka_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Three healthy brokers, position topic and transaction log on all of them. Only the
// topic of the events has one replica, on a broker that is not the transaction's
// coordinator. That broker is killed in the middle of a transaction, and a new leader
// takes over before it is back. Kafka writes no marker there.
func TestRealMarkerOfALeaderlessPartition(t *testing.T) {
	l := startLeaderless(t)
	t.Run("an aborted transaction becomes visible", l.aborted)
	t.Run("a committed transaction is lost", l.committed)
	t.Run("the position of an aborted transaction becomes visible", l.position)
	t.Run("the next batch goes elsewhere", l.elsewhere)
	t.Run("a living leader goes on at the same partition", l.living)
	t.Run("aborted by its time-out", func(t *testing.T) { l.timeout(t, "timeout", 1, "[1/0 2/0]") })
	t.Run("aborted by its time-out, nothing committed before", func(t *testing.T) {
		l.timeout(t, "timeout-first", 0,
			"[1/0]")
	})
	t.Run("two batches under one marker, committed", func(t *testing.T) {
		l.together(t, "together-commit", true,
			"[1/0 2/0]")
	})
	t.Run("two batches under one marker, aborted", func(t *testing.T) { l.together(t, "together-abort", false, "[2/0]") })
	t.Run("nobody may read the topic", l.blind)
}

// startLeaderless starts three brokers. On the listener SECURE the user outbox has the
// rights that it was given, elsewhere everybody has all.
func startLeaderless(t *testing.T, properties ...string) leaderless {
	t.Helper()
	c := servers.KafkaClusterForTest(t, 3, servers.KafkaOptions{Own: true, JVMArgs: []string{markersLogged(t)},
		Listeners: []servers.Listener{{Name: "SECURE", Protocol: "SASL_PLAINTEXT"}},
		Properties: append([]string{
			// 10 s by default: only so that it takes less time
			"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
			"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
			"super.users=User:ANONYMOUS",
			"listener.name.secure.sasl.enabled.mechanisms=PLAIN",
			`listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_outbox="secret";`,
		}, properties...)})
	return leaderless{KafkaCluster: c, reader: kafkatest.Reader{Brokers: c.Addrs()}}
}

// markersLogged has the brokers log the markers that they skip.
func markersLogged(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "log4j2.properties")
	err := os.WriteFile(path, []byte(`rootLogger.level=warn
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d{ISO8601} %p %m (%c)%n
logger.markers.name=kafka.coordinator.transaction.TransactionMarkerChannelManager
logger.markers.level=info
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return "-Dlog4j2.configurationFile=" + path
}

type leaderless struct {
	*servers.KafkaCluster
	reader kafkatest.Reader
}

func (l leaderless) client(t *testing.T) sarama.Client {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V4_0_0_0
	client, err := sarama.NewClient(l.Addrs(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// prepare makes the topic on one broker that does not coordinate the transactions.
func (l leaderless) prepare(t *testing.T, name string) (pub *kafka.Publisher, victim *servers.Kafka,
	coordinator *sarama.Broker) {
	t.Helper()
	cfg := config(l.Addrs())
	cfg.Connector, cfg.RequestTimeout, cfg.DeliveryTimeout = name, 15*time.Second, time.Minute // for busy machines
	return l.prepareWith(t, cfg)
}

func (l leaderless) prepareWith(t *testing.T, cfg kafka.Config) (pub *kafka.Publisher, victim *servers.Kafka,
	coordinator *sarama.Broker) {
	t.Helper()
	name := cfg.Connector
	pub = publisher(t, cfg)
	s, _, _ := reopen(t, pub)
	closeSink(t, s)
	client := l.client(t)
	coordinator, err := client.TransactionCoordinator(cfg.TransactionalID())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range l.Brokers {
		if int32(b.NodeID()) != coordinator.ID() {
			victim = b
		}
	}
	admin, err := l.Brokers[0].Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	err = admin.CreateTopic(name, &sarama.TopicDetail{NumPartitions: -1, ReplicationFactor: -1,
		ReplicaAssignment: map[int32][]int32{0: {int32(victim.NodeID())}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	l.await(t, coordinator, name, true)
	t.Logf("coordinator is broker %d, the topic is on broker %d", coordinator.ID(), victim.NodeID())
	return pub, victim, coordinator
}

// await waits until a broker knows a leader of the topic, or knows that there is none.
func (l leaderless) await(t *testing.T, b *sarama.Broker, topic string, has bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		m, err := b.GetMetadata(&sarama.MetadataRequest{Version: 7, Topics: []string{topic}})
		if err == nil && len(m.Topics) == 1 && len(m.Topics[0].Partitions) == 1 &&
			(m.Topics[0].Partitions[0].Leader >= 0) == has {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no answer as wanted about %s: %v", topic, err)
		}
	}
}

func (l leaderless) values(t *testing.T, topic string) string {
	t.Helper()
	recs, err := l.reader.Read(t.Context(), topic, true)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(values(recs))
}

// awaitState waits until the coordinator says so of a transactional id; an empty state
// waits until it has forgotten it.
func (l leaderless) awaitState(t *testing.T, coordinator *sarama.Broker, id, state string) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		got, err := coordinator.DescribeTransactions(&sarama.DescribeTransactionsRequest{TransactionalIDs: []string{id}})
		if err == nil && len(got.TransactionStates) == 1 && got.TransactionStates[0].TransactionState == state {
			return
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("the transaction is not %q: %+v, %v", state, got, err)
		}
	}
}

// down kills the broker of a topic and waits until the coordinator knows.
func (l leaderless) down(t *testing.T, victim *servers.Kafka, coordinator *sarama.Broker, topic string) {
	t.Helper()
	if err := victim.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() { // the next test needs it
			_ = victim.Restart(context.Background())
		}
	})
	l.await(t, coordinator, topic, false)
}

// up starts it again.
func (l leaderless) up(t *testing.T, victim *servers.Kafka, coordinator *sarama.Broker, topic string) {
	t.Helper()
	if err := victim.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.await(t, coordinator, topic, true)
}

func (l leaderless) want(t *testing.T, topic, want string) {
	t.Helper()
	if got := l.values(t, topic); got != want {
		t.Errorf("a read_committed consumer of %s sees %s, want %s", topic, got, want)
	}
}

// said shows what the brokers log about it.
func (l leaderless) said(t *testing.T) {
	for _, b := range l.Brokers {
		text, _ := os.ReadFile(b.LogPath())
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "likely deleted already") {
				t.Logf("broker %d: %s", b.NodeID(), line)
			}
		}
	}
}

func (l leaderless) aborted(t *testing.T) {
	pub, victim, coordinator := l.prepare(t, "aborted")
	batches := newBatcher("aborted")
	old, _, _ := reopen(t, pub)
	kept := batches.next(1, 1)
	commit(t, old, kept)
	kafka.LeaveTransactionOpen(t, old, batches.next(1, 1)) // its leader dies here
	batches.seq--
	l.down(t, victim, coordinator, "aborted")
	young := pub.ExactlyOnce(2)
	pos, found, err := young.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantPosition(t, pos, found, kept.Position)
	l.up(t, victim, coordinator, "aborted")
	commit(t, young, batches.next(1, 1))
	closeSink(t, young)
	l.want(t, "aborted", "[1/0 2/0]")
	l.said(t)
}

func (l leaderless) committed(t *testing.T) {
	pub, victim, coordinator := l.prepare(t, "committed")
	batches := newBatcher("committed")
	one, _, _ := reopen(t, pub)
	first := batches.next(1, 1)
	kafka.LeaveTransactionOpen(t, one, first)
	l.down(t, victim, coordinator, "committed")
	if err := kafka.CommitOpenTransaction(t, one); err != nil {
		t.Fatal("the commit is refused, as it should be: ", err)
	}
	l.up(t, victim, coordinator, "committed")
	// The next leader dies in the middle of its first transaction.
	two, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, first.Position)
	kafka.LeaveTransactionOpen(t, two, batches.next(1, 1))
	batches.seq--
	three, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, first.Position)
	commit(t, three, batches.next(1, 1))
	closeSink(t, three)
	l.want(t, "committed", "[1/0 2/0]")
	l.said(t)
}

// The topic of the events has three replicas, the one of the position has one, as it
// is created where default.replication.factor is 1, Kafka's default. Its broker is away
// for longer than the transaction may take; nobody opens a sink meanwhile.
func (l leaderless) position(t *testing.T) {
	cfg := config(l.Addrs())
	cfg.Connector, cfg.TransactionTimeout = "position", 8*time.Second
	pub := publisher(t, cfg)
	client := l.client(t)
	coordinator, err := client.TransactionCoordinator(cfg.TransactionalID())
	if err != nil {
		t.Fatal(err)
	}
	var victim *servers.Kafka
	for _, b := range l.Brokers {
		if int32(b.NodeID()) != coordinator.ID() {
			victim = b
		}
	}
	admin, err := l.Brokers[0].Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	compact := "compact"
	err = admin.CreateTopic(cfg.PositionTopic(), &sarama.TopicDetail{NumPartitions: -1, ReplicationFactor: -1,
		ReplicaAssignment: map[int32][]int32{0: {int32(victim.NodeID())}},
		ConfigEntries:     map[string]*string{"cleanup.policy": &compact}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Brokers[0].CreateTopic("position", 1, nil); err != nil {
		t.Fatal(err)
	}
	l.await(t, coordinator, cfg.PositionTopic(), true)
	batches := newBatcher("position")
	old, _, _ := reopen(t, pub)
	kept := batches.next(1, 1)
	commit(t, old, kept)
	kafka.LeaveTransactionOpen(t, old, batches.next(1, 1)) // its leader dies here
	l.down(t, victim, coordinator, cfg.PositionTopic())
	l.awaitState(t, coordinator, cfg.TransactionalID(), "CompleteAbort")
	l.up(t, victim, coordinator, cfg.PositionTopic())
	young, pos, found := reopen(t, pub)
	if !found || pos.Last.Seq != kept.Position.Last.Seq {
		t.Errorf("the position says that transaction %d is published, the last one that was committed is %d", pos.Last.Seq,
			kept.Position.Last.Seq)
	}
	// The connector goes on behind it.
	batches.seq, batches.set = pos.Last.Seq, pos.Set
	commit(t, young, batches.next(1, 1))
	closeSink(t, young)
	l.want(t, "position", "[1/0 2/0]")
	l.said(t)
}
