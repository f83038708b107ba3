package fast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	topic      = "events"
	partitions = 3
	// transactions are written over about a second.
	transactions = 500
)

var sourceID = uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562")

// world is a cluster of nodes with everything around it.
type world struct {
	seed    uint64
	network *kfake.VirtualNetwork
	kafka   *kfake.Cluster
	began   time.Time
	every   time.Duration // between two commits in the binlog
	binlog  []txn.Transaction
	rows    int // ids 1..rows are in it

	mu        sync.Mutex
	random    *rand.Rand
	broken    float64 // chance that the source breaks at a read
	store     position.Position
	stored    bool
	term      uint64 // of the newest leader
	decisions []connector.RowDecision
	change    chan struct{}
}

func newWorld(seed uint64, brokers int) (*world, error) {
	w := &world{
		seed: seed, network: &kfake.VirtualNetwork{}, began: time.Now(), every: 2 * time.Millisecond,
		random: rand.New(rand.NewPCG(seed, 1)), broken: .01, change: make(chan struct{}),
	}
	ports := make([]int, brokers)
	for i := range ports {
		ports[i] = 9092 + i
	}
	var err error
	w.kafka, err = kfake.NewCluster(kfake.Ports(ports...), kfake.ListenFn(w.network.Listen),
		kfake.SeedTopics(partitions, topic))
	if err != nil {
		return nil, err
	}
	for n := range uint64(transactions) {
		g := position.GTID{SID: sourceID, Seq: n + 1}
		tx := txn.Transaction{Commit: position.Commit{GTID: g, First: n + 1, File: "b.000001", Pos: n*100 + 200,
			Committed: w.began}, Final: true}
		if w.random.IntN(4) > 0 {
			for range 1 + w.random.IntN(4) {
				w.rows++
				tx.Rows = append(tx.Rows, schema.Row{Op: schema.Insert, After: []any{w.rows}})
			}
		}
		w.binlog = append(w.binlog, tx)
	}
	return w, nil
}

func (w *world) intn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.intn(int(most-least)))
}

var errSource = errors.New("the scripted source broke")

// source reads the binlog as far as it is written at this time.
type source struct {
	w    *world
	from position.Position
	next int
}

// sources opens the binlog for one node.
type sources struct{ w *world }

func (s sources) Open(_ context.Context, from position.Position) (connector.Source, error) {
	if s.w.breaks() {
		return nil, errSource
	}
	return &source{w: s.w, from: from}, nil
}

func (s sources) Start(context.Context) (position.Position, error) {
	return position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}, nil
}

func (w *world) breaks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < w.broken
}

func (s *source) Next(ctx context.Context) ([]txn.Transaction, error) {
	for {
		if s.w.breaks() {
			return nil, errSource
		}
		written := min(len(s.w.binlog), int(time.Since(s.w.began)/s.w.every))
		var out []txn.Transaction
		for ; s.next < written && len(out) < 60; s.next++ {
			if tx := s.w.binlog[s.next]; !s.from.Set.Has(tx.Commit.GTID) {
				out = append(out, tx)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-time.After(s.w.every):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *source) Status() canal.Status { return canal.Status{Connected: true} }
func (s *source) Close() error         { return nil }

// encoder makes records that carry nothing but the number of the row.
type encoder struct{}

func (encoder) Encode(mem *txn.Arena, row *schema.Row) (txn.Record, bool, error) {
	id, _ := row.After[0].(int)
	return txn.Record{
		Topic: topic, Partition: -1, Timestamp: -1,
		Key: mem.Keep(append(mem.Room(), "k"+strconv.Itoa(id%7)...)), Value: mem.Keep(strconv.AppendInt(mem.Room(), int64(id),
			10)),
	}, true, nil
}

func (encoder) RawFallback(*schema.Row) (key, value []byte) { return nil, nil }

// positions is the replicated store as the node of one term sees it.
type positions struct {
	w    *world
	term uint64
}

func (p positions) Position() (position.Position, bool) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.store, p.w.stored
}

func (p positions) Begin(uint64) (position.Position, bool) { return p.Position() }

func (p positions) SavePosition(_ context.Context, pos position.Position) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.term < p.w.term {
		return fmt.Errorf("%w: term %d is over", connector.ErrSuperseded, p.term)
	}
	if p.w.stored && !pos.Covers(p.w.store) {
		return fmt.Errorf("the stored position would go back from %s to %s", p.w.store, pos)
	}
	p.w.store, p.w.stored = pos, true
	return nil
}

func (p positions) RowDecisions() ([]connector.RowDecision, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return slices.Clone(p.w.decisions), nil
}

func (p positions) DecideRow(_ context.Context, d connector.RowDecision) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.decisions = append(p.w.decisions, d)
	return nil
}

func (p positions) Wanted() connector.State  { return connector.StateRunning }
func (p positions) Changed() <-chan struct{} { return p.w.change }

// sinks makes the real sinks of one process.
type sinks struct{ publisher *kafka.Publisher }

func (s sinks) NewSink(term uint64) (connector.Sink, error) {
	return s.publisher.ExactlyOnce(term), nil
}
func (s sinks) Check(r *txn.Record) error { return s.publisher.Check(r) }

func (s sinks) IdleCommit() time.Duration { return time.Second }
func (s sinks) KeepsPosition() bool       { return true }

// process is one node's process that believes, from its start to its end, that it
// leads: the worst that a lying lease can do.
type process struct {
	w         *world
	proxy     *kproxy.Proxy
	publisher *kafka.Publisher
	connector *connector.Connector
	term      uint64
}

func (w *world) process(term uint64) (*process, error) {
	p := &process{w: w, proxy: kproxy.New(), term: term}
	cfg := kafka.DefaultConfig()
	cfg.Brokers = append(cfg.Brokers, w.kafka.ListenAddrs()...)
	cfg.Connector, cfg.Node = "orders", "node-"+strconv.FormatUint(term, 10)
	cfg.RequestTimeout, cfg.AckTimeout, cfg.DialTimeout = requestTimeout, requestTimeout/2, requestTimeout
	cfg.TransactionTimeout, cfg.DeliveryTimeout = 20*time.Second, 10*time.Second
	cfg.Dialer = p.proxy.Dialer(w.network.DialContext)
	publisher, err := kafka.NewPublisher(cfg, quiet, nil)
	if err != nil {
		return nil, err
	}
	p.publisher = publisher
	cc := connector.DefaultConfig()
	cc.Name, cc.Limits = "orders", connector.Limits{Rows: 40, Bytes: 1 << 20}
	cc.RetrySnapshot, cc.RetryMax = 5*time.Millisecond, 60*time.Millisecond
	cc.SaveEvery, cc.SaveQuiet = 20*time.Millisecond, 5*time.Millisecond
	cc.CloseTimeout, cc.DrainTimeout = time.Second, 5*time.Second
	p.connector = connector.New(cc, sources{w}, sinks{publisher}, encoder{}, positions{w, term}, nil, quiet)
	return p, nil
}

// requestTimeout is what a swallowed request costs; more than a busy machine needs.
const requestTimeout = 250 * time.Millisecond

var quiet = slog.New(slog.DiscardHandler)

// newTerm counts the terms of leaders.
func (w *world) newTerm() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term++
	return w.term
}

// live runs a process for a time and ends it, mostly without warning.
func (p *process) live(ctx context.Context, d time.Duration, orderly bool) {
	stop, end := context.WithCancel(context.Background())
	leadership, cut := context.WithCancel(context.Background())
	defer cut()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.connector.Run(stop, leadership, p.term)
	}()
	sleep(ctx, d)
	if !orderly {
		cut()
		p.proxy.Cut()
	}
	end()
	<-done
}

// committed reads what a read_committed consumer sees, by partition in order.
func (w *world) committed(ctx context.Context) ([][]int, error) {
	reader := kafkatest.Reader{Brokers: w.kafka.ListenAddrs(), Opts: []kgo.Opt{kgo.Dialer(w.network.DialContext)}}
	records, err := reader.Read(ctx, topic, true)
	if err != nil {
		return nil, err
	}
	out := make([][]int, partitions)
	for _, r := range records {
		id, err := strconv.Atoi(string(r.Value))
		if err != nil {
			return nil, err
		}
		out[r.Partition] = append(out[r.Partition], id)
	}
	return out, nil
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
