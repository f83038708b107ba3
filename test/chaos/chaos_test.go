package chaos

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
)

var (
	length = flag.Duration("chaos.time", 45*time.Second, "how long faults come")
	seed   = flag.Uint64("chaos.seed", 0, "seed of the plan; 0 draws one")
)

// TestChaos is a slice of what make chaos does for longer.
func TestChaos(t *testing.T) {
	n := *seed
	if n == 0 {
		n = rand.Uint64N(1_000_000)
	}
	t.Logf("seed %d; to repeat its plan: go test ./test/chaos -run TestChaos -chaos.seed %d -chaos.time %v", n, n, *length)
	judged(t, n, func(o Options) (*Report, error) {
		po := plan.DefaultOptions(*length)
		po.Calm = 6 * time.Second
		po.Without = o.Without()
		return Run(t.Context(), o, plan.Make(n, po), *length)
	})
}

// TestZombie wakes a leader that was stopped beyond the timeout of its transaction.
func TestZombie(t *testing.T) {
	judged(t, 1, func(o Options) (*Report, error) {
		return Zombies(t.Context(), o, 1, transactionTimeout+2*time.Second)
	})
}

func judged(t *testing.T, seed uint64, run func(Options) (*Report, error)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "binlog-outbox-chaos-") //nolint:usetesting // kept when it fails
	if err != nil {
		t.Fatal(err)
	}
	report, err := run(Options{Dir: dir, Seed: seed, Log: t.Output()})
	if err != nil {
		t.Fatalf("%v\nlogs and data are kept in %s", err, dir)
	}
	t.Logf("%v", report)
	if report.Broken != nil {
		t.Fatalf("promises were broken; logs and data are kept in %s", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
