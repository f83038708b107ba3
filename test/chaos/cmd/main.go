// Command cmd runs test/chaos for longer than its tests do.
//
//	go run ./test/chaos/cmd                          ten minutes of faults
//	go run ./test/chaos/cmd -time 1h -sources 2      an hour, with switch-overs of MySQL
//	go run ./test/chaos/cmd -seed 7 -time 5m         the plan of that seed
//	go run ./test/chaos/cmd -brokers 3 -unreplicated partitions may be without a leader
//	go run ./test/chaos/cmd -rush -time 20m          as many takeovers as possible
//	go run ./test/chaos/cmd zombie -times 20         leaders that sleep for a minute
//	go run ./test/chaos/cmd outage -times 1 -asleep 2m   MySQL and all brokers gone
//	go run ./test/chaos/cmd failover -times 20       how long consumers wait for the next leader
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	options chaos.Options
	time    time.Duration
	each    time.Duration
	times   int
	asleep  time.Duration
	rate    int
	record  string
	only    string
	rush    bool
}

func run(ctx context.Context, args []string) error {
	what := "chaos"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		what, args = args[0], args[1:]
	}
	var s settings
	flags := flag.NewFlagSet(what, flag.ContinueOnError)
	flags.Uint64Var(&s.options.Seed, "seed", 0, "seed of the plan; 0 draws one")
	flags.IntVar(&s.options.Brokers, "brokers", 1, "brokers of Kafka")
	flags.IntVar(&s.options.Sources, "sources", 1,
		"MySQL servers; the second follows the first and takes its place now and then")
	flags.BoolVar(&s.options.MariaDB, "mariadb", false, "MariaDB in place of MySQL")
	flags.BoolVar(&s.options.Unreplicated, "unreplicated", false,
		"one replica for each topic of the connector, whatever the number of brokers")
	flags.DurationVar(&s.time, "time", 10*time.Minute, "how long in all")
	flags.DurationVar(&s.each, "each", 10*time.Minute, "how long before everything is made anew, with another seed")
	flags.IntVar(&s.times, "times", 20, "how often, of zombie, outage and failover")
	flags.DurationVar(&s.asleep, "asleep", time.Minute,
		"how long a leader is stopped, or the servers are gone, of zombie and outage")
	flags.IntVar(&s.options.PerSecond, "load", 0, "transactions a second; 0 means 250")
	flags.IntVar(&s.rate, "rate", 1000, "rows a second, of failover")
	flags.StringVar(&s.only, "only", "", "only kinds of faults with this in their name")
	flags.BoolVar(&s.rush, "rush", false, "faults of the leader alone, one every few seconds")
	flags.StringVar(&s.record, "record", "", "file to append the results to, with versions and machine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.options.Seed == 0 {
		s.options.Seed = rand.Uint64N(1_000_000_000)
	}
	dir, err := os.MkdirTemp("", "binlog-outbox-chaos-")
	if err != nil {
		return err
	}
	s.options.Dir, s.options.Log = dir, os.Stdout
	if err := s.do(ctx, what, args); err != nil {
		return fmt.Errorf("%w\nlogs and data are kept in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

func (s *settings) do(ctx context.Context, what string, args []string) error {
	var results chaos.Results
	results.Command = fmt.Sprintf("go run ./test/chaos/cmd %s %v", what, args)
	defer func() {
		if s.record != "" {
			if err := appendTo(s.record, &results); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	switch what {
	case "chaos":
		return chaos.Runs(ctx, s.options, s.time, s.each, s.plan, func(r *chaos.Report) {
			fmt.Println(r)
			results.Reports = append(results.Reports, r)
		})
	case "zombie", "outage":
		play := chaos.Zombies
		if what == "outage" {
			play = chaos.Outages
		}
		r, err := play(ctx, s.options, s.times, s.asleep)
		if r != nil {
			fmt.Println(r)
			results.Reports = append(results.Reports, r)
			err = errors.Join(err, r.Broken)
		}
		return err
	case "failover":
		all, err := chaos.BenchFailover(ctx, chaos.FailoverOptions{Options: s.options, Times: s.times, PerSecond: s.rate})
		for _, f := range all {
			fmt.Println(f)
		}
		results.Failovers = all
		return err
	}
	return fmt.Errorf("there is no %q: chaos, zombie, outage or failover", what)
}

// plan changes what plans are made from.
func (s *settings) plan(o *plan.Options) {
	o.Rush = s.rush
	for _, k := range plan.Kinds() {
		if !strings.Contains(string(k), s.only) {
			o.Without = append(o.Without, k)
		}
	}
}

func appendTo(path string, r *chaos.Results) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return r.Markdown(io.Writer(f))
}
