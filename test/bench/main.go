package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	quick   bool
	only    []string
	rounds  int
	out     string
	against string
	profile string
	keep    bool
	command string
}

func parse(args []string) (options, error) {
	o := options{command: strings.TrimSpace("go run ./test/bench " + strings.Join(args, " "))}
	only := ""
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "less of everything, in about five minutes")
	flags.StringVar(&only, "only", "", "scenarios to run, separated by commas: "+strings.Join(scenarioNames(), ", "))
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each scenario; 0 is three, or with -quick one")
	flags.StringVar(&o.out, "out", "", "file to write the page to; printed when empty")
	flags.StringVar(&o.against, "against", "debezium", "debezium, or nothing to measure this program alone")
	flags.StringVar(&o.profile, "profile", "",
		"folder for CPU profiles of this program, one for each of its catch-up runs; they cost some of its speed")
	flags.BoolVar(&o.keep, "keep", false, "keep logs and data")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(scenarioNames(), name) {
			return o, fmt.Errorf("there is no scenario %q, but %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	if o.against != "debezium" && o.against != "nothing" {
		return o, fmt.Errorf("-against %q: want debezium or nothing", o.against)
	}
	if o.rounds == 0 {
		o.rounds = 3
		if o.quick {
			o.rounds = 1
		}
	}
	return o, nil
}

func (o *options) wants(scenario string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, scenario)
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := newLab(ctx, o)
	defer func() { err = errors.Join(err, l.close(err == nil && !o.keep)) }()
	if err != nil {
		return err
	}
	var chosen []scenario
	for _, s := range scenarios() {
		if o.wants(s.name) {
			chosen = append(chosen, s)
		}
	}
	for _, s := range chosen {
		if s.prepare == nil {
			continue
		}
		l.say("preparing %s", s.name)
		if err := s.prepare(ctx, l); err != nil {
			return fmt.Errorf("preparing %s: %w", s.name, err)
		}
	}
	if err := l.saveOffsets(ctx); err != nil {
		return err
	}
	for _, s := range chosen {
		if err := s.run(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	page, err := l.page(ctx, chosen, time.Since(began))
	if err != nil {
		return err
	}
	if o.out == "" {
		fmt.Print(page)
		return nil
	}
	return os.WriteFile(o.out, []byte(page), 0o644)
}

// scenario is one thing that is measured.
type scenario struct {
	name string
	// prepare writes the binlog that all contestants read; nil where rows are
	// written while they run.
	prepare func(context.Context, *lab) error
	run     func(context.Context, *lab) error
	report  func(*lab) string
}

func scenarios() []scenario {
	return []scenario{
		{"catchup", prepareCatchUp, runCatchUp, reportCatchUp},
		{"shapes", prepareShapes, runShapes, reportShapes},
		{"foreign", prepareForeign, runForeign, reportForeign},
		{"latency", prepareLive, runLatency, reportLatency},
		{"start", prepareStart, runStart, reportStart},
		{"large", prepareLarge, runLarge, reportLarge},
		{"gtids", prepareGTIDs, runGTIDs, reportGTIDs},
	}
}

func scenarioNames() []string {
	return []string{"catchup", "shapes", "foreign", "latency", "start", "large", "gtids"}
}
