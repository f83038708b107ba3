package node

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// release is the version of a release build, set by the linker:
// -ldflags "-X github.com/binlog-outbox/binlog-outbox/node.release=v1.2.3".
var release = ""

// Build says what this program was built from.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	// Modified is set when the sources differed from the revision.
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version returns what the linker and the Go tool wrote into the program.
func Version() Build {
	b := Build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
func (b Build) String() string {
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
	b := Version()
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "binlog_outbox_build_info", Help: "Always 1; the labels say what the program was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	g.Set(1)
	return g
}
