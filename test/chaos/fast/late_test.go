package fast

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// script is one sink with a proxy that does exactly what a test says, for the races
// that schedules meet by chance only.
type script struct {
	t         *testing.T
	w         *world
	process   *process
	publisher *kafka.Publisher
	sink      *kafka.ExactlyOnce
	committed int // rows
	positions string
	copyEnd   bool // the next EndTxn is lost, and a copy of it held back

	mu      sync.Mutex
	release chan struct{}
	before  func(r kproxy.Request, topic string) // sees each request of a transaction
}

func newScript(t *testing.T) *script {
	t.Helper()
	w, err := newWorld(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kafka.Close)
	return w.script(t)
}

// script is another process in the same world.
func (w *world) script(t *testing.T) *script {
	t.Helper()
	p, err := w.process(w.newTerm())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.proxy.Close() })
	s := &script{t: t, w: w, process: p, publisher: p.publisher, positions: "binlog-outbox.orders.position"}
	p.proxy.Decide(s.decide)
	return s
}

func (s *script) decide(r kproxy.Request) kproxy.Fate {
	var to string
	switch req := r.Decode().(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		if len(req.Topics) > 0 {
			to = req.Topics[0].Topic
		}
	case *kmsg.ProduceRequest:
		to = req.Topics[0].Topic
	case *kmsg.InitProducerIDRequest:
	case *kmsg.EndTxnRequest:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.copyEnd {
			s.copyEnd = false
			s.release = make(chan struct{})
			return kproxy.Fate{Action: kproxy.Copy, Until: s.release}
		}
		return kproxy.Fate{}
	default:
		return kproxy.Fate{}
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		before(r, to)
	}
	return kproxy.Fate{}
}

// loseNextEnd loses the answer to the next EndTxn, so that the client sends it
// again, and holds a copy back until deliver.
func (s *script) loseNextEnd() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copyEnd = true
}

// deliver lets the copy arrive now and waits until it is answered.
func (s *script) deliver() {
	s.mu.Lock()
	release := s.release
	s.release = nil
	s.mu.Unlock()
	if release == nil {
		return
	}
	answered := func() (n int) {
		for name, times := range s.process.proxy.Counts() {
			if len(name) > len("EndTxn copy answered ") && name[:len("EndTxn copy answered ")] == "EndTxn copy answered " {
				n += times
			}
		}
		return n
	}
	before := answered()
	close(release)
	for deadline := time.Now().Add(10 * time.Second); answered() == before && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// when calls f once, before the first request of that kind to that topic goes on.
func (s *script) when(key kmsg.Key, topic string, f func()) {
	var once sync.Once
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = func(r kproxy.Request, to string) {
		if r.Key() == key && to == topic {
			once.Do(f)
		}
	}
}

func (s *script) open() {
	s.t.Helper()
	s.sink = s.publisher.ExactlyOnce(s.w.newTerm())
	pos, found, err := s.sink.Open(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.committed = 0
	if found {
		s.committed = int(pos.Seq)
	}
}

func (s *script) close() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.sink.Close(ctx); err != nil {
		s.t.Error(err)
	}
}

// commit publishes the next n rows, one transaction each.
func (s *script) commit(ctx context.Context, n int) error {
	b := &txn.Batch{}
	set := position.NewSet(position.MySQL)
	for i := range n {
		id := s.committed + i + 1
		m := position.Commit{GTID: position.GTID{SID: sourceID, Seq: uint64(id)}, First: uint64(id)}
		b.Groups = append(b.Groups, txn.Group{Commit: m, Records: []txn.Record{
			{Topic: topic, Partition: -1, Key: []byte("k" + strconv.Itoa(id%7)), Value: []byte(strconv.Itoa(id)), Timestamp: -1},
		}})
	}
	last := b.Groups[n-1].Commit.GTID
	set.AddRange(last, 1)
	b.Position = position.Position{Flavor: position.MySQL, Set: set, Last: last, Seq: uint64(s.committed + n)}
	_, err := s.sink.Commit(ctx, b)
	if err == nil {
		s.committed += n
	}
	return err
}

func (s *script) mustCommit(n int) {
	s.t.Helper()
	if err := s.commit(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
}

// check compares what a read_committed consumer sees with rows 1 to n.
func (s *script) check(n int) {
	s.t.Helper()
	seen, err := s.w.committed(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var all []int
	for _, ids := range seen {
		all = append(all, ids...)
	}
	slices.Sort(all)
	for i := range max(n, len(all)) {
		if i >= len(all) || i >= n || all[i] != i+1 {
			s.t.Fatalf("a consumer sees rows %v, want 1 to %d once each", all, n)
		}
	}
}

var errCrash = errors.New("the process ends here")

// A commit request arrives once more in the middle of the next transaction, when
// all of its rows are there and its position is not, and then the writer dies.
func TestLateCommit(t *testing.T) {
	for _, c := range []struct {
		name string
		open bool // it is the commit of the opening's own record
	}{{"of a batch", false}, {"of the open record", true}} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t)
			if c.open {
				s.loseNextEnd()
			}
			s.open()
			if !c.open {
				s.loseNextEnd()
				s.mustCommit(5)
			}
			ctx, crash := context.WithCancelCause(t.Context())
			defer crash(nil)
			s.when(kmsg.AddPartitionsToTxn, s.positions, func() {
				s.deliver()
				crash(errCrash)
			})
			before := s.committed
			if err := s.commit(ctx, 5); err == nil {
				t.Log("the batch was committed before the crash")
			}
			s.close()
			s.open()
			s.mustCommit(before + 10 - s.committed)
			s.check(before + 10)
			s.close()
		})
	}
}

// A batch is given up in good order, and the request that aborts it arrives once
// more in the middle of the next one. A producer that goes on after an abort loses
// that one's rows without an error.
func TestLateAbort(t *testing.T) {
	s := newScript(t)
	s.open()
	s.mustCommit(5)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	s.loseNextEnd()
	s.when(kmsg.AddPartitionsToTxn, s.positions, func() { stop(errCrash) })
	if err := s.commit(ctx, 5); err == nil {
		t.Fatal("the batch was committed, though its context had ended")
	}
	s.close()
	s.open()
	if s.committed != 5 {
		t.Fatalf("the position after an abort is row %d, want 5", s.committed)
	}
	s.when(kmsg.AddPartitionsToTxn, s.positions, s.deliver)
	s.mustCommit(5)
	s.close()
	s.open()
	s.mustCommit(5)
	s.check(15)
	s.close()
}

// The three ways in which a leader that does not know that it is over could do harm.
func TestTakeover(t *testing.T) {
	t.Run("while the old one is in the middle of a batch", func(t *testing.T) {
		old := newScript(t)
		old.open()
		old.mustCommit(5)
		next := old.w.script(t)
		old.when(kmsg.AddPartitionsToTxn, old.positions, func() {
			next.open()
			next.mustCommit(5)
		})
		if err := old.commit(t.Context(), 5); err == nil {
			t.Error("the old leader could commit")
		}
		next.mustCommit(5)
		next.check(15)
		old.close()
		next.close()
	})
	t.Run("while the old one commits", func(t *testing.T) {
		old := newScript(t)
		old.open()
		old.mustCommit(5)
		next := old.w.script(t)
		next.when(kmsg.InitProducerID, "", func() { old.mustCommit(5) })
		next.open()
		if next.committed != 10 {
			t.Errorf("the new leader goes on at row %d, want 10", next.committed)
		}
		next.mustCommit(5)
		next.check(15)
		old.close()
		next.close()
	})
	t.Run("and back again", func(t *testing.T) {
		old := newScript(t)
		old.open()
		old.mustCommit(5)
		next := old.w.script(t)
		next.open()
		next.mustCommit(5)
		next.close()
		if err := old.commit(t.Context(), 5); err == nil {
			t.Error("the old leader could commit")
		}
		old.close()
		old.open()
		old.mustCommit(5)
		old.check(15)
		old.close()
	})
}
