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
	dir, err := os.MkdirTemp("", "binlog-outbox-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d; to repeat its plan: go test ./test/chaos -run TestChaos -chaos.seed %d -chaos.time %v", n, n, *length)
	o := Options{Dir: dir, Seed: n, Log: t.Output()}
	po := plan.DefaultOptions(*length)
	po.Calm = 6 * time.Second
	po.Without = o.Without()
	report, err := Run(t.Context(), o, plan.Make(n, po), *length)
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
