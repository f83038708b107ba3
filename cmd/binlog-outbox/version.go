package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
)

// release is the version of a release build, set by the linker:
// -ldflags "-X main.release=v1.2.3".
var release = ""

// build says what this program was built from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// Modified is set when the sources differed from the revision.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// version returns what the linker and the Go tool wrote into the program.
func version() build {
	b := build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "development"
	}
	return b
}

// String is one line for people.
func (b build) String() string {
	details := []string{b.Go, b.Platform}
	if b.Revision != "" {
		revision := b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			revision += " with changes"
		}
		details = append([]string{revision}, details...)
	}
	return fmt.Sprintf("binlog-outbox %s (%s)", b.Version, strings.Join(details, ", "))
}

// buildInfo is the metric that tells which version a node runs.
func buildInfo() prometheus.Collector {
	b := version()
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "binlog_outbox_build_info", Help: "Always 1; the labels say what the program was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	g.Set(1)
	return g
}

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built from",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			asJSON, err := p.json()
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(version())
			}
			_, err = fmt.Fprintln(p.stdout, version())
			return err
		},
	}
}

// noArgs refuses arguments as a wrong command line.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, not %q", c.Name(), args[0])}
	}
	return nil
}

func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
