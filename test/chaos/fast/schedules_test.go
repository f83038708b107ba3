package fast

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/kproxy"
)

var (
	schedules = flag.Int("schedules", 0, "how many schedules of each profile to try; 0 is a number that takes seconds")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(m.Run())
}

// A profile is what the network does to a schedule's requests.
type profile struct {
	name  string
	rules []kproxy.Rule
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

// rule is a line of a profile.
func rule(key kmsg.Key, action kproxy.Action, chance float64, least, most time.Duration) kproxy.Rule {
	return kproxy.Rule{Key: key, Action: action, Chance: chance, Least: least, Most: most}
}

// few is a little of everything for one kind of request, times n.
func few(key kmsg.Key, n float64) []kproxy.Rule {
	return []kproxy.Rule{
		rule(key, kproxy.Slow, .02*n, ms, 50*ms), rule(key, kproxy.Slow, .004*n, 60*ms, 600*ms),
		rule(key, kproxy.Lose, .004*n, 0, 0),
		rule(key, kproxy.Drop, .004*n, 0, 0), rule(key, kproxy.Late, .004*n, ms, 20*ms),
		rule(key, kproxy.Stall, .001*n, requestTimeout, requestTimeout+60*ms),
	}
}

func profiles() []profile {
	mixed := few(kmsg.Produce, 1)
	for _, key := range []kmsg.Key{kmsg.AddPartitionsToTxn, kmsg.InitProducerID, kmsg.EndTxn, kmsg.FindCoordinator} {
		mixed = append(mixed, few(key, 3)...)
	}
	return []profile{
		{"none", nil},
		{"mixed", mixed},
		// The EndTxn that arrives when the next transaction is open (KAFKA-17754).
		{"late", []kproxy.Rule{
			rule(kmsg.EndTxn, kproxy.Late, .07, ms, 20*ms), rule(kmsg.EndTxn, kproxy.Copy, .03, ms, 30*ms),
			rule(kmsg.EndTxn, kproxy.Stall, .01, requestTimeout, requestTimeout+60*ms),
			rule(kmsg.EndTxn, kproxy.Slow, .05, 5*ms, 60*ms),
			rule(kmsg.Produce, kproxy.Slow, .2, ms, 20*ms),
		}},
	}
}

// atOnce is how many schedules run at the same time: they mostly wait.
const atOnce = 8

// TestSchedules lets nodes take over from each other while none of the old ones
// stops, under each profile, and then checks that a read_committed consumer sees
// each row once and in order, and that the stored position covers the binlog.
func TestSchedules(t *testing.T) {
	n := *schedules
	if n == 0 {
		n = 24
	}
	for _, p := range profiles() {
		t.Run(p.name, func(t *testing.T) {
			sum := &tally{faults: map[string]int{}}
			g, ctx := errgroup.WithContext(t.Context())
			g.SetLimit(atOnce)
			for i := range uint64(n) {
				g.Go(func() error {
					if ctx.Err() != nil {
						return nil // another has failed
					}
					seed := *firstSeed + i
					if err := runSchedule(ctx, seed, p, sum); err != nil && ctx.Err() == nil {
						return fmt.Errorf("seed %d: %w\nto repeat: go test ./test/chaos/fast -run TestSchedules/%s -seed %d -schedules 1",
							seed, err, p.name, seed)
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			t.Logf("%d schedules: %v", n, sum)
		})
	}
}

// tally counts over schedules.
type tally struct {
	mu              sync.Mutex
	takeovers, rows int
	faults          map[string]int
}

func (s *tally) add(takeovers, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeovers, s.rows = s.takeovers+takeovers, s.rows+rows
}

func (s *tally) count(faults map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range faults {
		if !strings.Contains(name, "answered") && !strings.Contains(name, "arrived") {
			name, _, _ = strings.Cut(name, " ")
			s.faults[name] += n
		}
	}
}

func (s *tally) String() string {
	out := fmt.Sprintf("%d takeovers, %d rows; faults:", s.takeovers, s.rows)
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		out += fmt.Sprintf(" %s %d", name, s.faults[name])
	}
	return out
}

func runSchedule(ctx context.Context, seed uint64, p profile, sum *tally) error {
	w, err := newWorld(seed, 1+int(seed%2)*2)
	if err != nil {
		return err
	}
	defer w.kafka.Close()
	takeovers := 5 + w.intn(8)
	if err := w.contest(ctx, takeovers, p, sum); err != nil {
		return err
	}
	if err := w.calm(ctx); err != nil {
		return err
	}
	seen, err := w.committed(ctx)
	if err != nil {
		return err
	}
	sum.add(takeovers, w.rows)
	return w.judge(seen)
}

// contest starts one leader after the other and ends each at some time of its own.
func (w *world) contest(ctx context.Context, takeovers int, p profile, sum *tally) error {
	var alive sync.WaitGroup
	defer alive.Wait()
	for range takeovers {
		node, err := w.process(w.newTerm())
		if err != nil {
			return err
		}
		node.proxy.Decide(kproxy.Rules(rand.New(rand.NewPCG(w.seed, node.term+10)), p.rules...))
		life, orderly := w.between(30*ms, 600*ms), w.intn(4) == 0
		alive.Go(func() {
			node.live(ctx, life, orderly)
			sum.count(node.proxy.Counts())
			_ = node.proxy.Close() // it has no listeners that could fail
		})
		sleep(ctx, w.between(5*ms, 250*ms))
	}
	return nil
}

// calm lets a last node publish all that is left, without faults.
func (w *world) calm(ctx context.Context) error {
	w.mu.Lock()
	w.broken = 0
	w.mu.Unlock()
	node, err := w.process(w.newTerm())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*sec)
	defer cancel()
	go func() {
		for ctx.Err() == nil && w.covered() < transactions {
			sleep(ctx, 5*ms)
		}
		cancel()
	}()
	node.live(ctx, 30*sec, true)
	return node.proxy.Close()
}

func (w *world) covered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stored {
		return 0
	}
	return int(w.store.Set.Count())
}

// judge compares what was read with the binlog.
func (w *world) judge(seen [][]int) error {
	times := make([]int, w.rows+1)
	var lost, twice, order []string
	for p, ids := range seen {
		last := 0
		for _, id := range ids {
			if id < 1 || id > w.rows {
				return fmt.Errorf("nothing invented: row %d was never written", id)
			}
			if times[id]++; times[id] == 2 {
				twice = append(twice, fmt.Sprint(id))
			}
			if id < last {
				order = append(order, fmt.Sprintf("%d after %d in partition %d", id, last, p))
			}
			last = id
		}
	}
	for id := 1; id <= w.rows; id++ {
		if times[id] == 0 {
			lost = append(lost, fmt.Sprint(id))
		}
	}
	if len(lost)+len(twice)+len(order) > 0 {
		return fmt.Errorf("of %d rows %d are lost %.80v, %d come twice %.80v, %d are out of order %.120v", w.rows, len(lost),
			lost, len(twice), twice, len(order), order)
	}
	if w.covered() != transactions {
		return fmt.Errorf("the position does not rot: it covers %s of %d transactions", w.store, len(w.binlog))
	}
	return nil
}
