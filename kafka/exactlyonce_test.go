package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

const positionTopic = "binlog-outbox.orders.position"

// reopen opens a new sink and returns the position it finds.
func reopen(t testing.TB, pub *kafka.Publisher) (*kafka.ExactlyOnce, position.Position, bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		s := pub.ExactlyOnce(1)
		pos, found, err := s.Open(t.Context())
		// A machine that is busy answers late; the connector opens again then.
		if e, ok := errors.AsType[*kafka.Error](err); ok && e.Code == kafka.Timeout && time.Now().Before(end) {
			closeSink(t, s)
			continue
		}
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		t.Cleanup(func() { closeSink(t, s) })
		return s, pos, found
	}
}

func wantPosition(t testing.TB, got position.Position, found bool, want position.Position) {
	t.Helper()
	if !found {
		t.Fatal("no position was found")
	}
	sameSet := got.Set == nil && want.Set == nil || got.Set != nil && want.Set != nil && got.Set.Equal(want.Set)
	samePart := reflect.DeepEqual(got.Partials, want.Partials)
	if !sameSet || !samePart || got.Last != want.Last || !got.Committed.Equal(want.Committed) || got.Seq != want.Seq ||
		got.File != want.File || got.Pos != want.Pos || got.Server != want.Server || got.Flavor != want.Flavor {
		t.Fatalf("position is %+v, want %+v", got, want)
	}
}

func TestPositionIsCommittedWithTheRecords(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 3, nil)
	pub := publisher(t, config(c.Brokers()))
	s, _, found := reopen(t, pub)
	if found {
		t.Fatal("a new connector has a position")
	}
	b := newBatcher(topic)
	for range 5 {
		last := b.next(3, 2)
		commit(t, s, last)
		var pos position.Position
		s, pos, found = reopen(t, pub)
		wantPosition(t, pos, found, last.Position)
	}
}

func TestPositionTopicIsCompactedWithOnePartition(t *testing.T) {
	c := kafkatest.Start(t, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(7))
	cfg := config(c.Brokers())
	cfg.Topics.AutoCreate = true
	reopen(t, publisher(t, cfg))
	if n := len(c.PartitionInfos(positionTopic)); n != 1 {
		t.Errorf("%d partitions", n)
	}
	if p := c.TopicInfo(positionTopic).Configs["cleanup.policy"]; p == nil || *p != "compact" {
		t.Error("the topic is not compacted")
	}
}

func TestUnfitPositionTopicIsRefused(t *testing.T) {
	for name, make := range map[string]func(c *kafkatest.Cluster){
		"partitions": func(c *kafkatest.Cluster) {
			c.Topic(positionTopic, 2,
				map[string]string{"cleanup.policy": "compact"})
		},
		"forgets": func(c *kafkatest.Cluster) { c.Topic(positionTopic, 1, map[string]string{"cleanup.policy": "delete"}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := kafkatest.Start(t)
			make(c)
			s := publisher(t, config(c.Brokers())).ExactlyOnce(1)
			_, _, err := s.Open(t.Context())
			wantError(t, err, kafka.TopicInvalid, false)
			closeSink(t, s)
		})
	}
}

func TestOldBrokersAreRefused(t *testing.T) {
	for version, v := range map[string]*kversion.Versions{"3.5": kversion.V3_5_0(), "2.8": kversion.V2_8_0()} {
		t.Run(version, func(t *testing.T) {
			c := kafkatest.Start(t, kfake.MaxVersions(v), kfake.SeedTopics(1, "orders"))
			pub := publisher(t, config(c.Brokers()))
			s := pub.ExactlyOnce(1)
			_, _, err := s.Open(t.Context())
			e := wantError(t, err, kafka.Unsupported, false)
			if !strings.Contains(e.Error(), "at_least_once") {
				t.Errorf("no way out is named: %v", e)
			}
			closeSink(t, s)
			commit(t, open(t, pub.AtLeastOnce()), newBatcher("orders").next(1, 1))
		})
	}
	c := kafkatest.Start(t, kfake.MaxVersions(kversion.V3_6_0()), kfake.SeedTopics(1, "orders"))
	s, _, _ := reopen(t, publisher(t, config(c.Brokers())))
	commit(t, s, newBatcher("orders").next(1, 1))
}

func TestNewSinkFencesTheOld(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	b := newBatcher(topic)
	old, _, _ := reopen(t, pub)
	first := b.next(1, 2)
	commit(t, old, first)
	young, pos, found := reopen(t, pub)
	wantPosition(t, pos, found, first.Position)
	second := b.next(1, 2)
	done, err := old.Commit(t.Context(), second)
	var e *kafka.Error
	if !errors.As(err, &e) || e.Code != kafka.Fenced && e.Code != kafka.ProducerState || !e.Retry || done != 0 {
		t.Fatalf("the old sink's Commit = %d, %v", done, err)
	}
	commit(t, young, second)
	wantExactlyInOrder(t, c.Records(topic), batchValues(first, second))
}

func TestNothingOfAFailedBatchIsVisible(t *testing.T) {
	for name, fault := range map[string]func(c *kafkatest.Cluster, topic string){
		"records":  func(c *kafkatest.Cluster, topic string) { c.FailProduce(topic, -1, kerr.TopicAuthorizationFailed) },
		"position": func(c *kafkatest.Cluster, _ string) { c.FailProduce(positionTopic, -1, kerr.TopicAuthorizationFailed) },
		"partitions": func(c *kafkatest.Cluster, _ string) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.TransactionalIDAuthorizationFailed})
		},
		"commit": func(c *kafkatest.Cluster, _ string) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.TransactionalIDAuthorizationFailed})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := kafkatest.Start(t)
			topic := c.Topic("orders", 1, nil)
			pub := publisher(t, config(c.Brokers()))
			b := newBatcher(topic)
			s, _, _ := reopen(t, pub)
			first := b.next(2, 2)
			commit(t, s, first)
			fault(c, topic)
			second := b.next(2, 2)
			if done, err := s.Commit(t.Context(), second); err == nil || done != 0 {
				t.Fatalf("Commit = %d, %v", done, err)
			}
			c.ClearFaults()
			s, pos, found := reopen(t, pub)
			wantPosition(t, pos, found, first.Position)
			commit(t, s, second)
			wantExactlyInOrder(t, c.Records(topic), batchValues(first, second))
		})
	}
}

// countInit counts the producer epochs that were asked for.
func countInit(c *kafkatest.Cluster) func() int {
	return c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Count: -1, Observe: true}).Hits
}

func TestRepeatedCommitTakesANewEpoch(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	pub := publisher(t, config(c.Brokers()))
	b := newBatcher(topic)
	s, _, _ := reopen(t, pub)
	epochs := countInit(c)
	commit(t, s, b.next(1, 1))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress})
	second := b.next(1, 1)
	commit(t, s, second)
	if n := epochs(); n != 0 {
		t.Fatalf("%d new epochs before they are needed", n)
	}
	third := b.next(1, 1)
	commit(t, s, third)
	if n := epochs(); n != 1 {
		t.Errorf("%d new epochs after a repeated commit, want 1", n)
	}
	commit(t, s, b.next(1, 1))
	if n := epochs(); n != 1 {
		t.Errorf("%d epochs, want 1: the taint is gone", n)
	}
	if got := values(c.Records(topic)); strings.Join(got, " ") != "1/0 2/0 3/0 4/0" {
		t.Errorf("records = %q", got)
	}
}

// The new epoch that a repeated commit asks for may not be had: the session ends with
// a reason, and the sink can still be closed.
func TestNewEpochThatCannotBeHadEndsTheSession(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	cfg := config(c.Brokers())
	dead := false
	cfg.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dead {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	b := newBatcher(topic)
	s, _, _ := reopen(t, publisher(t, cfg))
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress})
	commit(t, s, b.next(1, 1))
	dead = true
	_, err := s.Commit(t.Context(), b.next(1, 1))
	wantError(t, err, kafka.Unreachable, true)
}

func TestRepeatedCommitOfTheOpenRecordTakesANewEpoch(t *testing.T) {
	c := kafkatest.Start(t)
	c.Topic("orders", 1, nil)
	epochs := countInit(c)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress})
	reopen(t, publisher(t, config(c.Brokers())))
	if n := epochs(); n != 2 {
		t.Errorf("%d epochs, want 2", n)
	}
}

// A new cluster has no transaction coordinator until it is asked for one, and then
// soon. Whoever asks again only after seconds has the consumers wait.
func TestOpeningWaitsShortlyForTheFirstCoordinator(t *testing.T) {
	c := kafkatest.Start(t)
	topic := c.Topic("orders", 1, nil)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.FindCoordinator}, Err: kerr.CoordinatorNotAvailable, Count: 4})
	var mu sync.Mutex
	var asked []time.Time
	c.ControlKey(int16(kmsg.FindCoordinator), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, time.Now())
		return nil, nil, false
	})
	s, _, _ := reopen(t, publisher(t, config(c.Brokers())))
	mu.Lock()
	defer mu.Unlock()
	shortest := time.Hour // of the pauses: a busy machine makes any of them longer
	for i := 1; i < len(asked); i++ {
		shortest = min(shortest, asked[i].Sub(asked[i-1]))
	}
	if len(asked) < 5 || shortest > 300*time.Millisecond {
		t.Errorf("asked %d times, with a pause of %v at least", len(asked), shortest)
	}
	b := newBatcher(topic)
	commit(t, s, b.next(1, 1))
}

func TestLeadershipIsVerifiedAroundTheClaim(t *testing.T) {
	lost := errors.New("not the leader")
	for _, c := range []struct {
		name   string
		fail   int // which call
		epochs int
	}{{"before", 1, 0}, {"after", 2, 1}} {
		t.Run(c.name, func(t *testing.T) {
			cl := kafkatest.Start(t)
			epochs := countInit(cl)
			calls := 0
			cfg := config(cl.Brokers())
			cfg.VerifyLeader = func(context.Context) error {
				if calls++; calls == c.fail {
					return lost
				}
				return nil
			}
			s := publisher(t, cfg).ExactlyOnce(1)
			if _, _, err := s.Open(t.Context()); !errors.Is(err, lost) {
				t.Errorf("Open = %v", err)
			}
			closeSink(t, s)
			if n := epochs(); n != c.epochs {
				t.Errorf("%d epochs were claimed, want %d", n, c.epochs)
			}
		})
	}
}

func TestPositionsOfAllKinds(t *testing.T) {
	c := kafkatest.Start(t)
	set, _ := position.ParseSet(position.MariaDB, "0-1-100,1-2-7")
	maria := position.GTID{Domain: 0, Server: 1, Seq: 100}
	tagged, _ := position.ParseSet(position.MySQL, source.String()+":1-5:7:tag:1-3")
	for name, b := range map[string]*txn.Batch{
		"mariadb": {Groups: []txn.Group{{Commit: position.Commit{GTID: maria, First: 100}}},
			Position: position.Position{Flavor: position.MariaDB, Set: set, Last: maria, Seq: 3}},
		"file": {Groups: []txn.Group{{Commit: position.Commit{File: "b.000002", Pos: 1 << 33}}},
			Position: position.Position{Flavor: position.MySQL, Server: "s", File: "b.000002", Pos: 1 << 33}},
		"tags": {Position: position.Position{Flavor: position.MySQL, Set: tagged}},
		"partial": {Position: position.Position{Flavor: position.MySQL, Set: tagged, Partials: []position.Partial{
			{GTID: position.GTID{SID: source, Seq: 8}, Rows: []position.KindRows{{Kind: position.Kind{Database: "shop",
				Table: "outbox", Op: "insert"}, N: 12345}}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(c.Brokers())
			cfg.Connector = name
			pub := publisher(t, cfg)
			s, _, _ := reopen(t, pub)
			commit(t, s, b)
			commit(t, s, b)
			_, pos, found := reopen(t, pub)
			wantPosition(t, pos, found, b.Position)
		})
	}
}

// largePosition is a position with many sources, as servers have that were
// restored and replaced often.
func largePosition(n int) position.Position {
	set := position.NewSet(position.MySQL)
	for i := range n {
		set.AddRange(position.GTID{SID: uuid.NewSHA1(source, fmt.Append(nil, i)), Seq: 1000000}, 1)
	}
	return position.Position{Flavor: position.MySQL, Server: source.String(), Set: set}
}

func TestLargeSetsAreWrittenSeldom(t *testing.T) {
	c := kafkatest.Start(t)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	pos := largePosition(500)
	const batches = 450
	for i := range uint64(batches) {
		m := position.Commit{GTID: position.GTID{SID: source, Seq: 3*i + 2}, First: 3*i + 1, File: "b.1", Pos: i}
		pos.Advance(m)
		commit(t, s, &txn.Batch{Groups: []txn.Group{{Commit: m}}, Position: pos})
		if i%150 != 0 {
			continue
		}
		var got position.Position
		var found bool
		s, got, found = reopen(t, pub)
		wantPosition(t, got, found, pos)
	}
	total, fulls := 0, 0
	for _, r := range c.Records(positionTopic) {
		total += len(r.Value)
		if string(r.Key) == "position" {
			fulls++
		}
	}
	if fulls > 6 || fulls < 3 {
		t.Errorf("%d full positions among %d, want a few", fulls, batches)
	}
	t.Logf("%d bytes a batch, %d full positions", total/batches, fulls)
}

func TestSetThatChangedOtherwiseIsWrittenWhole(t *testing.T) {
	c := kafkatest.Start(t)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	pos := largePosition(100)
	commit(t, s, &txn.Batch{Position: pos})
	pos.Set = pos.Set.Clone()
	pos.Set.Add(position.GTID{SID: source, Seq: 77}) // no commit position tells
	commit(t, s, &txn.Batch{Position: pos})
	_, got, found := reopen(t, pub)
	wantPosition(t, got, found, pos)
}

func TestPositionIsFoundBehindManyOpenRecords(t *testing.T) {
	c := kafkatest.Start(t)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	b := newBatcher("none").next(3, 0)
	commit(t, s, b)
	for range 270 { // two offsets each
		s := pub.ExactlyOnce(1)
		if _, _, err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		closeSink(t, s)
	}
	_, got, found := reopen(t, pub)
	wantPosition(t, got, found, b.Position)
}

func TestUnreadablePositionStops(t *testing.T) {
	good := `1 00000000 {"id":"x","position":{}}`
	for name, rec := range map[string]*kgo.Record{
		"newer version":     {Key: []byte("position"), Value: []byte("2 00000000 {}")},
		"checksum":          {Key: []byte("position"), Value: []byte(good)},
		"empty":             {Key: []byte("position"), Value: nil},
		"delta without end": {Key: []byte("since"), Value: []byte("1 12345678 {")},
	} {
		t.Run(name, func(t *testing.T) {
			c := kafkatest.Start(t)
			c.Topic(positionTopic, 1, map[string]string{"cleanup.policy": "compact"})
			write(t, c, positionTopic, rec)
			s := publisher(t, config(c.Brokers())).ExactlyOnce(1)
			_, _, err := s.Open(t.Context())
			wantError(t, err, kafka.PositionUnreadable, false)
			closeSink(t, s)
		})
	}
}

func TestTruncatedPositionStops(t *testing.T) {
	c := kafkatest.Start(t)
	pub := publisher(t, config(c.Brokers()))
	s, _, _ := reopen(t, pub)
	pos := largePosition(100)
	commit(t, s, &txn.Batch{Position: pos})
	m := position.Commit{GTID: position.GTID{SID: source, Seq: 1}, First: 1}
	pos.Advance(m)
	commit(t, s, &txn.Batch{Groups: []txn.Group{{Commit: m}}, Position: pos})
	if err := c.DeleteRecords(positionTopic, 0, 4); err != nil { // open, marker, full, marker
		t.Fatal(err)
	}
	broken := pub.ExactlyOnce(1)
	_, _, err := broken.Open(t.Context())
	wantError(t, err, kafka.PositionUnreadable, false)
	closeSink(t, broken)
}

func write(t *testing.T, c *kafkatest.Cluster, topic string, rec *kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// Writers take over from each other all the time, the old ones go on as zombies
// until they are refused, and the broker answers wrongly now and then. The log
// must be one chain without gap, repetition or disorder.
func TestB082ZombiesLeaveOneChain(t *testing.T) {
	partitions := int32(3)
	if raceEnabled {
		partitions = 1
	}
	c := kafkatest.Start(t, kfake.NumBrokers(3))
	topic := c.Topic("orders", partitions, nil)
	pub := publisher(t, config(c.Brokers()))
	deadline := time.Now().Add(4 * time.Second)
	var wg sync.WaitGroup
	faults := []kfake.Fault{
		{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition},
		{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend},
		{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.CoordinatorLoadInProgress},
		{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.NotCoordinator},
	}
	for i := 0; time.Now().Before(deadline); i++ {
		wg.Go(func() { zombie(t, pub, topic, deadline) })
		if i%3 == 0 {
			c.Fault(faults[i/3%len(faults)])
		}
		if i%7 == 0 {
			c.ShufflePartitionLeaders()
		}
		time.Sleep(100 * time.Millisecond) // the pace of take-overs, not a wait for anything
	}
	wg.Wait()
	_, pos, found := reopen(t, pub)
	for rounds := 0; !found; rounds++ { // a machine may be too busy for all of them
		if rounds == 10 {
			t.Fatal("nobody got anything through")
		}
		zombie(t, pub, topic, time.Now().Add(time.Second))
		_, pos, found = reopen(t, pub)
	}
	want := []string{}
	for seq := range pos.Last.Seq {
		for row := range rowsPerTransaction {
			want = append(want, fmt.Sprintf("%d/%d", seq+1, row))
		}
	}
	wantExactlyInOrder(t, c.Records(topic), want)
	t.Logf("%d transactions, %d uncommitted or committed records in all", pos.Last.Seq, len(c.AllRecords(topic)))
}

const rowsPerTransaction = 5

// zombie is a leader that doesn't know when it is over: it opens, publishes from
// where it finds itself, and ends with its first error.
func zombie(t *testing.T, pub *kafka.Publisher, topic string, deadline time.Time) {
	s := pub.ExactlyOnce(1)
	defer closeSink(t, s)
	pos, _, err := s.Open(t.Context())
	if err != nil {
		t.Logf("Open: %v", err)
		return
	}
	b := newBatcher(topic)
	b.seq = pos.Last.Seq
	if pos.Set != nil {
		b.set = pos.Set
	}
	for time.Now().Before(deadline) {
		if _, err := s.Commit(t.Context(), b.next(3, rowsPerTransaction)); err != nil {
			return
		}
	}
}
