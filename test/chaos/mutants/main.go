package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "only those with this in their name")
	list := flags.Bool("list", false, "print them and end")
	limit := flags.Duration("limit", 2*time.Minute, "how long a mutant may go unnoticed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "binlog-outbox-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var chosen []Mutant
	for _, m := range Mutants() {
		if strings.Contains(m.Name, *only) {
			chosen = append(chosen, m)
		}
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-22s %s\n%24s%s\n%24scaught by %s (%s -run %s)\n", m.Name, m.Rule, "without it: ", m.Harm, "", m.Level,
				m.Package, m.Test)
		}
		return nil
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant has %q in its name", *only)
	}
	if err := control(ctx, root, chosen, *limit); err != nil {
		return err
	}
	var survived []string
	for _, m := range chosen {
		ok, err := one(ctx, root, dir, &m, *limit)
		if err != nil {
			return err
		}
		if !ok {
			survived = append(survived, m.Name)
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("%d of %d mutants were not noticed: %s", len(survived), len(chosen), strings.Join(survived, ", "))
	}
	fmt.Printf("all %d mutants were noticed\n", len(chosen))
	return nil
}

// control runs each test on the product as it is: one that fails there would catch
// anything.
func control(ctx context.Context, root string, chosen []Mutant, limit time.Duration) error {
	tests := map[string]string{}
	for _, m := range chosen {
		patterns := strings.Split(tests[m.Package], "|")
		if tests[m.Package] == "" {
			patterns = nil
		}
		found := false
		for _, p := range patterns {
			found = found || p == m.Test
		}
		if !found {
			tests[m.Package] = strings.Join(append(patterns, m.Test), "|")
		}
	}
	for pkg, pattern := range tests {
		ctx, cancel := context.WithTimeout(ctx, 5*limit)
		r, err := Run(ctx, root, "", pkg, pattern)
		cancel()
		if err != nil {
			return fmt.Errorf("testing %s as it is: %w", pkg, err)
		}
		if r.Caught {
			return fmt.Errorf("%s -run '%s' fails on the product as it is: %s", pkg, pattern, r.Words)
		}
		fmt.Printf("%-22s passes %s -run '%s' in %v\n", "(the product)", pkg, pattern, r.After.Round(100*time.Millisecond))
	}
	return nil
}

func one(ctx context.Context, root, dir string, m *Mutant, limit time.Duration) (caught bool, err error) {
	overlay, err := m.Apply(root, dir)
	if err != nil {
		return false, err
	}
	// What go build takes is not the mutant's time.
	ctx, cancel := context.WithTimeoutCause(ctx, limit+2*time.Minute, context.DeadlineExceeded)
	defer cancel()
	r, err := Run(ctx, root, overlay, m.Package, m.Test)
	switch {
	case errors.Is(err, context.DeadlineExceeded), err == nil && r.After > limit:
		fmt.Printf("%-22s NOT NOTICED within %v\n", m.Name, limit)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("mutant %s: %w", m.Name, err)
	case !r.Caught:
		fmt.Printf("%-22s NOT NOTICED by %s -run %s\n", m.Name, m.Package, m.Test)
		return false, nil
	}
	fmt.Printf("%-22s noticed after %v by %s: %s\n", m.Name, r.After.Round(100*time.Millisecond), m.Level, r.Words)
	return true, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
