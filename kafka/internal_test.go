package kafka

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/binlog-outbox/binlog-outbox/envelope"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// The tracker against a model that looks at all records each time.
func TestTrackerMovesOverGapFreePrefixesOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := make([]txn.Group, rapid.IntRange(0, 20).Draw(t, "groups"))
		var of []int // the groups of all records
		for i := range groups {
			groups[i].Records = make([]txn.Record, rapid.IntRange(0, 3).Draw(t, "rows"))
			for range groups[i].Records {
				of = append(of, i)
			}
		}
		order := rapid.Permutation(of).Draw(t, "order")
		n := rapid.IntRange(0, len(order)).Draw(t, "acknowledged")
		tr := newTracker(groups)
		acked := make([]int, len(groups))
		for i := 0; ; i++ {
			want := 0
			for want < len(groups) && acked[want] == len(groups[want].Records) {
				want++
			}
			if got := tr.prefix(); got != want {
				t.Fatalf("after %d acknowledgements the prefix is %d, want %d", i, got, want)
			}
			if i == n {
				return
			}
			acked[order[i]]++
			tr.ack(order[i])
		}
	})
}

func keys() [][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := [][]byte{{}, []byte("é"), []byte("日本語のキー"), {0}, {0xff, 0xfe, 0xfd}}
	for i := len(out); i < 10000; i++ {
		switch i % 3 {
		case 0:
			out = append(out, fmt.Appendf(nil, "%d", i))
		case 1:
			out = append(out, fmt.Appendf(nil, "order-%08x-é", r.Uint32()))
		default:
			b := make([]byte, 1+r.IntN(40))
			for j := range b {
				b[j] = byte(r.Uint32())
			}
			out = append(out, b)
		}
	}
	return out
}

func partition(t *testing.T, key []byte, n int32) int32 {
	t.Helper()
	o := &outgoing{partition: -1}
	p := &producer{keys: map[string][]byte{}}
	got, err := newPartitioner("orders").Partition(p.message(o, 0, &txn.Record{Topic: "orders", Partition: -1, Key: key},
		newFlight(nil)), n)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestB064SamePartitionAsTheJavaProducer(t *testing.T) {
	java := kgo.StickyKeyPartitioner(nil).ForTopic("orders")
	for _, n := range []int32{1, 3, 12, 50} {
		for _, k := range keys() {
			want := java.Partition(&kgo.Record{Key: k}, int(n))
			if got := partition(t, k, n); got != int32(want) {
				t.Fatalf("key %q of %d partitions: %d, want %d", k, n, got, want)
			}
		}
	}
}

// The hashes are those of Kafka's own UtilsTest.testMurmur2.
func TestB064KafkasOwnHashes(t *testing.T) {
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		const n = 1000
		if got, want := partition(t, []byte(key), n), hash&0x7fffffff%n; got != want {
			t.Errorf("key %q: partition %d, want %d", key, got, want)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err   error
		code  Code
		retry bool
	}{
		{sarama.ErrProducerFenced, Fenced, true},
		{sarama.ErrInvalidProducerEpoch, Fenced, true},
		{sarama.ErrInvalidProducerIDMapping, Fenced, true},
		{sarama.ErrMessageSizeTooLarge, RecordTooLarge, false},
		{sarama.ErrTopicAuthorizationFailed, NotAuthorized, true},
		{sarama.ErrClusterAuthorizationFailed, NotAuthorized, true},
		{sarama.ErrTransactionalIDAuthorizationFailed, NotAuthorized, true},
		{sarama.ErrSASLAuthenticationFailed, AuthFailed, true},
		{sarama.ErrUnknownTopicOrPartition, TopicMissing, true},
		{sarama.ErrInvalidTopic, TopicInvalid, false},
		{sarama.ErrInvalidReplicationFactor, Unavailable, true},
		{sarama.ErrInvalidPartition, PartitionOutOfRange, false},
		{sarama.ErrInvalidRecord, RecordInvalid, false},
		{sarama.ErrOutOfOrderSequenceNumber, ProducerState, true},
		{sarama.ErrInvalidTxnState, ProducerState, true},
		{sarama.ErrNotEnoughReplicas, Unavailable, true},
		{sarama.ErrNotLeaderForPartition, Unavailable, true},
		{sarama.ErrRequestTimedOut, Timeout, true},
		{sarama.ErrUnsupportedVersion, Unsupported, false},
		{sarama.Wrap(sarama.ErrOutOfBrokers, refused), Unreachable, true},
		{io.EOF, Unreachable, true},
		{sarama.ErrClosedClient, Unreachable, true},
		{errors.New("something new"), Unknown, true},
		{newError(TLSFailed, "handshake", x509.UnknownAuthorityError{}), TLSFailed, true},
		{sarama.Wrap(sarama.ErrOutOfBrokers, newError(AuthFailed, "no token", nil)), AuthFailed, true},
	} {
		e := classify("testing", fmt.Errorf("wrapped: %w", c.err))
		if e.Code != c.code || e.Retry != c.retry {
			t.Errorf("%v: code %s, retry %v; want %s, %v", c.err, e.Code, e.Retry, c.code, c.retry)
		}
	}
	if e := classify("testing", sarama.ErrProducerFenced); !strings.Contains(e.Error(), "PRODUCER_FENCED") {
		t.Errorf("the text does not name the error: %v", e)
	}
}

func TestFirstFailureIsTheCause(t *testing.T) {
	real := sarama.ErrTopicAuthorizationFailed
	for _, c := range []struct {
		name string
		errs []error
		want error
	}{
		{"only one", []error{real}, real},
		{"real one first", []error{real, sarama.ErrShuttingDown, sarama.ErrNotLeaderForPartition}, real},
		{"follow-up first", []error{sarama.ErrTransactionNotReady, real, sarama.ErrNotLeaderForPartition}, real},
		{"follow-ups only", []error{sarama.ErrShuttingDown, sarama.ErrTransactionNotReady}, sarama.ErrShuttingDown},
	} {
		f := newFlight([]txn.Group{{Records: []txn.Record{{}}}})
		for _, err := range c.errs {
			f.fail(&outgoing{rec: &txn.Record{}}, 0, err)
		}
		if _, first := f.result(); !errors.Is(first.err, c.want) {
			t.Errorf("%s: cause is %v, want %v", c.name, first.err, c.want)
		}
	}
}

// Only a record that names its partition is to blame when there is no such partition:
// the topic of the others was made anew with fewer.
func TestPartitionThatIsGoneBlamesWhoNamedIt(t *testing.T) {
	for partition, poison := range map[int32]bool{-1: false, 5: true} {
		rec := txn.Record{Partition: partition}
		f := newFlight([]txn.Group{{Records: []txn.Record{rec}}})
		f.fail(&outgoing{rec: &rec}, 5, sarama.ErrInvalidPartition)
		var e *Error
		if err := (&producer{}).cause(f, 1, errRecordFailed); !errors.As(err, &e) || e.Poison != poison || e.Retry == poison {
			t.Errorf("partition %d: poison %v, retry %v, want poison %v: %v", partition, e.Poison, e.Retry, poison, err)
		}
	}
}

func TestProduceEpochIsRead(t *testing.T) {
	for _, version := range []int16{3, 7, 8, 9, 10} {
		req := kmsg.NewPtrProduceRequest()
		req.SetVersion(version)
		for epoch := range int16(3) {
			batch := make([]byte, 61)
			batch[52] = byte(epoch)
			topic := kmsg.NewProduceRequestTopic()
			topic.Topic = "orders"
			topic.Partitions = []kmsg.ProduceRequestTopicPartition{{Records: batch}}
			req.Topics = append(req.Topics, topic)
		}
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("binlog-outbox")).AppendRequest(nil, req, 7)
		if epoch, ok := produceEpoch(frame); !ok || epoch != 2 {
			t.Errorf("version %d: epoch %d, %v; want 2, true", version, epoch, ok)
		}
	}
	other := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 7)
	if _, ok := produceEpoch(other); ok {
		t.Error("a metadata request is taken for a produce request")
	}
	for n := range 20 {
		produceEpoch(make([]byte, n)) // must not panic
	}
}

func TestMetricsCapTopics(t *testing.T) {
	m := NewMetrics(nil)
	for i := range 3 * maxTopicLabels {
		m.count([]txn.Group{{Records: []txn.Record{{Topic: fmt.Sprintf("t%d", i)}}}}, 1, 1)
	}
	if n := len(m.topics); n != maxTopicLabels+1 {
		t.Errorf("%d topic labels, want %d", n, maxTopicLabels+1)
	}
}

func TestSizeIsAnUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := txn.Record{
			Key:   rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "key"),
			Value: rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "value"),
		}
		for range rapid.IntRange(0, 10).Draw(t, "headers") {
			r.Headers = append(r.Headers, txn.Header{Key: rapid.String().Draw(t, "name"),
				Value: []byte(rapid.String().Draw(t, "header"))})
		}
		rec := kmsg.Record{Key: r.Key, Value: r.Value, TimestampDelta64: 1 << 40, OffsetDelta: 1 << 20}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		rec.Length = 1 << 20
		if wire := batchOverhead + len(rec.AppendTo(nil)); recordSize(&r) < wire {
			t.Fatalf("size %d is below the wire's %d", recordSize(&r), wire)
		}
	})
}

func TestBackoffsGrowAndAreCapped(t *testing.T) {
	for i, want := range []int{1, 2, 4, 8, 16, 20, 20} {
		if got := transactionBackoff(i, transactionRetries).Milliseconds(); got != int64(want) {
			t.Errorf("transaction retry %d waits %d ms, want %d", i, got, want)
		}
	}
	if got := produceBackoff(1000, 0).Milliseconds(); got != 100 {
		t.Errorf("produce retries wait up to %d ms, want 100", got)
	}
}

// What the position topic holds decides where to go on, and others may write to
// it: nothing in it may bring the program down or pass with a wrong byte.
func FuzzPositionRecords(f *testing.F) {
	w := positionWriter{session: "r"}
	set, err := position.ParseSet(position.MySQL, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:tag:1-3")
	if err != nil {
		f.Fatal(err)
	}
	pos := position.Position{Flavor: position.MySQL, Set: set, Seq: 9}
	for range 2 {
		key, value, err := w.next(w.at, pos, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(key, value, 3)
	}
	f.Add([]byte(deltaKey), []byte(`1 00000000 {"base":"x","since":"mariadb/0-1-2"}`), 0)
	f.Fuzz(func(t *testing.T, key, value []byte, at int) {
		var h history
		if err := h.take(key, value); err != nil {
			return
		}
		if _, _, err := h.position(); err != nil || h.full == nil {
			return
		}
		flipped := append([]byte{}, value...)
		flipped[uint(at)%uint(len(flipped))] ^= 1
		if err := (&history{}).take(key, flipped); err == nil {
			t.Fatalf("a wrong byte in %q passes: %q", value, flipped)
		}
	})
}

// The slots of a batch keep no large payload once it is published.
func TestPublishLetsLargePayloadsGo(t *testing.T) {
	p := &producer{cfg: &Config{DeliveryTimeout: time.Minute}, keys: map[string][]byte{},
		topics: newTopics(&Config{}, nil, newLimits(), nil)}
	input := make(chan *sarama.ProducerMessage)
	p.async = answering{input: input}
	go func() {
		m := <-input
		m.Metadata.(*outgoing).flight.acked(m.Metadata.(*outgoing))
	}()
	groups := []txn.Group{{Records: []txn.Record{{Topic: "t", Value: make([]byte, 2*heldPayload)}}}}
	if n, err := p.publish(t.Context(), groups, newFlight(groups)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if p.out[0].value != nil {
		t.Error("a large payload is kept")
	}
}

// answering is a sarama producer of which only the input is used.
type answering struct {
	sarama.AsyncProducer
	input chan *sarama.ProducerMessage
}

func (a answering) Input() chan<- *sarama.ProducerMessage { return a.input }

// What was written whole and what came since are read as one, and as the last says.
func TestPositionRecordsAreReadAsOne(t *testing.T) {
	set := position.NewSet(position.MySQL)
	pos := position.Position{Flavor: position.MySQL, Set: set, Snapshot: &position.Snapshot{Database: "shop",
		Table: "outbox", Key: []string{"7"}, Rows: 7}}
	for i := range 100 {
		set.Add(position.GTID{SID: uuid.UUID{byte(i + 1)}, Seq: 7})
	}
	w, h := positionWriter{session: "r", every: time.Hour}, history{}
	for i, step := range []struct {
		key     string
		advance []position.Commit
	}{
		{fullKey, nil},
		{deltaKey, []position.Commit{{GTID: position.GTID{SID: uuid.UUID{1}, Seq: 9}, First: 8}}},
		{deltaKey, []position.Commit{{GTID: position.GTID{SID: uuid.UUID{3}, Tag: "x", Seq: 1}, First: 1},
			{Snapshot: &position.Snapshot{Done: true}}}},
	} {
		pos.Advance(step.advance...)
		key, value, err := w.next(w.at, pos, nil)
		if err != nil || string(key) != step.key {
			t.Fatalf("step %d: a record %q, want %q (%v)", i, key, step.key, err)
		}
		if err := h.take(key, value); err != nil {
			t.Fatal(err)
		}
		got, found, err := h.position()
		if err != nil || !found || !got.Set.Equal(pos.Set) || (got.Snapshot != nil) != (i < 2) {
			t.Errorf("step %d: read back %+v, %v", i, got, err)
		}
	}
}

// A slow batch gets the time that it would take at the rate seen, as far as the brokers
// allow; beyond that somebody is told what to do. A quick one ends that.
func TestPatience(t *testing.T) {
	const configured = time.Minute
	var p patience
	if !p.outran(1<<20, 4<<20, configured) || p.timeout(configured) != 8*time.Minute {
		t.Errorf("after a quarter in a minute the next attempt has %s", p.timeout(configured))
	}
	if !p.outran(0, 1<<20, 8*time.Minute) || p.timeout(configured) != 16*time.Minute {
		t.Errorf("without any acknowledgement it has %s", p.timeout(configured))
	}
	p.refused(16*time.Minute, 7*time.Minute, configured)
	if got := p.timeout(configured); got != 7*time.Minute {
		t.Errorf("the brokers allow 7m, the next attempt asks for %s", got)
	}
	text := outranError(1<<20, 8<<20, 315*time.Second, 7*time.Minute, false).Error()
	for _, part := range []string{"1048576 of its 8388608 bytes", "3329 bytes a second", "7m0s", "producer_byte_rate",
		"transaction.max.timeout.ms"} {
		if !strings.Contains(text, part) {
			t.Errorf("the error lacks %q: %s", part, text)
		}
	}
	if p.kept(); p.timeout(configured) != configured {
		t.Errorf("after a quick batch it has %s", p.timeout(configured))
	}
	if p.outran(1<<20, 100<<20, configured); p.timeout(configured) != 7*time.Minute {
		t.Errorf("the brokers' longest is forgotten: %s", p.timeout(configured))
	}
	if p.outran(1<<20, 8<<20, 7*time.Minute) {
		t.Error("there is nothing above the brokers' longest")
	}
	if got := p.timeout(configured); got <= 7*time.Minute {
		t.Errorf("nobody asks whether the brokers allow more by now: the next attempt asks for %s", got)
	}
}

// Brokers that do not tell what they allow are asked for what most allow, and then for
// less, until they take it.
func TestPatienceWithSilentBrokers(t *testing.T) {
	const configured = time.Minute
	for _, longest := range []time.Duration{15 * time.Minute, 5 * time.Minute, 61 * time.Second, configured} {
		var p patience
		p.outran(1, 1000, configured)
		asked := p.timeout(configured)
		for range 20 {
			if asked <= longest {
				break
			}
			p.refused(asked, 0, configured)
			asked = p.timeout(configured)
		}
		if asked < configured || asked > longest || asked < longest/2 {
			t.Errorf("of the %s that the brokers allow it asks for %s", longest, asked)
		}
	}
}

// A later release's record of the position topic is not passed over.
func TestLaterPositionIsRefused(t *testing.T) {
	later, err := envelope.Seal(positionVersion+1, fullRecord{ID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{fullKey, deltaKey} {
		err := new(history).take([]byte(key), later)
		if !errors.Is(err, envelope.ErrNewer) || !strings.Contains(err.Error(),
			"it has version 2, this release knows up to 1") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
