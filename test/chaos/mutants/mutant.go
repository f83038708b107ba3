package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Mutant is the product with one rule broken.
type Mutant struct {
	Name string
	// Rule is the rule that it breaks, and Harm what that does to users.
	Rule, Harm string
	Edits      []Edit
	// Level says which kind of test notices, Test is the package and -run pattern
	// that does.
	Level   string
	Package string
	Test    string
}

// Edit replaces text that must be in a file exactly once.
type Edit struct{ File, Old, New string }

// Apply writes the mutated files below dir and returns the overlay for go build.
func (m *Mutant) Apply(root, dir string) (overlay string, err error) {
	texts := map[string]string{}
	for _, e := range m.Edits {
		text, ok := texts[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("mutant %s no longer fits: %s has its place %d times:\n%s", m.Name, e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, m.Name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, m.Name+".json")
	return overlay, os.WriteFile(overlay, b, 0o644)
}

// Result is what became of a mutant.
type Result struct {
	Caught bool
	After  time.Duration
	// Words is the first line of the failure.
	Words string
}

var errDoesNotBuild = errors.New("the mutant does not build")

// Run tests a mutant; an empty overlay is the product as it is.
func Run(ctx context.Context, root, overlay, pkg, pattern string) (Result, error) {
	test := func(args ...string) ([]byte, error) {
		args = append([]string{"test", "-overlay=" + overlay}, args...)
		if overlay == "" {
			args = append(args[:1], args[2:]...)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = root
		return cmd.CombinedOutput()
	}
	binary := filepath.Join(os.TempDir(), fmt.Sprintf("mutant-%d.test", os.Getpid()))
	defer os.Remove(binary)
	if out, err := test("-c", "-o", binary, pkg); err != nil {
		return Result{}, fmt.Errorf("%w: %w\n%s", errDoesNotBuild, err, out)
	}
	began := time.Now()
	out, err := test("-count=1", "-run", pattern, pkg)
	r := Result{After: time.Since(began), Words: words(out)}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return r, fmt.Errorf("no test of %s is called %s", pkg, pattern)
	case err == nil:
		return r, nil
	case errors.As(err, &exit):
		r.Caught = true
		return r, nil
	default:
		return r, err
	}
}

// words finds what a failed test said first.
func words(out []byte) string {
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "===") || strings.Contains(line, "time=") {
			continue
		}
		if len(line) > 200 {
			line = line[:200] + "..."
		}
		return line
	}
	return ""
}
