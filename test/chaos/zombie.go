package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
)

// ZombiePlan stops the leader for a time and lets it go on, under load, again and
// again: each time another has taken over meanwhile.
func ZombiePlan(times int, asleep time.Duration) (p plan.Plan, length time.Duration) {
	at := 2 * time.Second
	for range times {
		p.Steps = append(p.Steps, plan.Step{At: at, For: asleep, Kind: plan.SleepNode, Target: plan.Leader})
		at += asleep + 6*time.Second
	}
	return p, at
}

// Zombies plays ZombiePlan. Whatever a leader that wakes up has still in its hands
// must not reach a read_committed consumer; the report says whether any did, as rows
// that come twice, out of order or outside of their transaction.
func Zombies(ctx context.Context, o Options, times int, asleep time.Duration) (*Report, error) {
	p, length := ZombiePlan(times, asleep)
	p.Seed = o.Seed
	r, err := Run(ctx, o, p, length)
	if err != nil {
		return nil, err
	}
	if n := r.Takeovers[plan.SleepNode]; n < times {
		return r, fmt.Errorf("the leader was stopped %d times and only %d takeovers came of it", times, n)
	}
	return r, nil
}

// Outages kills MySQL and all brokers at once and brings them back after a time,
// again and again. The nodes wait it out by themselves.
func Outages(ctx context.Context, o Options, times int, gone time.Duration) (*Report, error) {
	p := plan.Plan{Seed: o.Seed}
	at := 2 * time.Second
	for range times {
		p.Steps = append(p.Steps, plan.Step{At: at, For: gone, Kind: plan.Outage})
		at += gone + 15*time.Second
	}
	return Run(ctx, o, p, at)
}

// Runs plays one plan after the other until the time is over, each on a new stage.
// change may change what the plans are made from.
func Runs(ctx context.Context, o Options, total, each time.Duration, change func(*plan.Options),
	report func(*Report)) error {
	deadline := time.Now().Add(total)
	for n := 0; n == 0 || time.Until(deadline) > each/2; n++ {
		length := min(each, max(time.Minute, time.Until(deadline)-time.Minute))
		po := plan.DefaultOptions(length)
		po.Without = o.Without()
		change(&po)
		one := o
		one.Dir = filepath.Join(o.Dir, strconv.Itoa(n))
		o.logf("seed %d; to repeat its plan: go run ./test/chaos/cmd -seed %d -time %v -sources %d -brokers %d", o.Seed,
			o.Seed, length, max(1, o.Sources), max(1, o.Brokers))
		r, err := Run(ctx, one, plan.Make(o.Seed, po), length)
		if err != nil {
			return fmt.Errorf("seed %d: %w", o.Seed, err)
		}
		report(r)
		if r.Broken != nil {
			return errBroken
		}
		if err := os.RemoveAll(one.Dir); err != nil {
			return err
		}
		o.Seed = rand.Uint64N(1_000_000_000)
	}
	return nil
}

var errBroken = errors.New("promises were broken")
