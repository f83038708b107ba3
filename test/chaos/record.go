package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/chaos/plan"
)

// Results are what a command has found, to be kept.
type Results struct {
	Command   string
	Reports   []*Report
	Failovers []Failovers
}

// Markdown writes the results as a section of docs/reliability.md: figures, the
// bound that follows from them, versions, machine, and how to repeat it.
func (r *Results) Markdown(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&b, "`%s`\n\n%s\n\n", r.Command, machine())
	if len(r.Reports) > 0 {
		r.reports(&b)
	}
	for _, f := range r.Failovers {
		fmt.Fprintf(&b, "- %v\n", f)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (r *Results) reports(b *strings.Builder) {
	faults, takeovers := map[plan.Kind]int{}, map[plan.Kind]int{}
	var length time.Duration
	all, rows, records, missing, repeated, transactions, rolledBack, kept := 0, 0, 0, 0, 0, 0, 0, 0
	seeds := ""
	for _, x := range r.Reports {
		for k, n := range x.Faults {
			faults[k] += n
		}
		for k, n := range x.Takeovers {
			takeovers[k] += n
		}
		all, length = all+x.Sum(), length+x.Length
		rows, records, missing, repeated = rows+x.Counts.Rows, records+x.Counts.Records, missing+x.Counts.Missing,
			repeated+x.Counts.Repeated
		transactions, rolledBack = transactions+x.Transactions, rolledBack+x.Counts.RolledBack
		if x.Broken == nil {
			kept++
		}
		seeds += fmt.Sprintf(" %d", x.Seed)
	}
	fmt.Fprintf(b, "%d runs, %v, seeds%s; %d rows in %d transactions of Kafka, %d transactions rolled back.\n\n",
		len(r.Reports), length.Round(time.Second), seeds, rows, transactions, rolledBack)
	fmt.Fprintf(b, "| fault | times | takeovers |\n|---|---|---|\n")
	for _, k := range slices.SortedFunc(maps.Keys(faults), func(a, b plan.Kind) int {
		return cmp.Compare(string(a),
			string(b))
	}) {
		fmt.Fprintf(b, "| %s | %d | %d |\n", k, faults[k], takeovers[k])
	}
	fmt.Fprintf(b, "\n%d takeovers; %d rows lost, %d doubled; every promise kept in %d of %d runs.", all, missing,
		repeated, kept, len(r.Reports))
	if kept == len(r.Reports) && all > 0 {
		fmt.Fprintf(b, " None of %d takeovers broke one, so with 95 %% confidence fewer than %.2g %% do (3/N).", all,
			300/float64(all))
	}
	fmt.Fprintf(b, "\n\n")
	for _, x := range r.Reports {
		if x.Broken != nil {
			fmt.Fprintf(b, "Seed %d:\n\n```\n%v\n```\n\n", x.Seed, x.Broken)
		}
	}
}

// machine says what ran the run.
func machine() string {
	out := fmt.Sprintf("binlog-outbox %s, %s, %d CPUs, %s/%s", revision(), runtime.Version(), runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if line, _, ok := strings.Cut(string(b), "\n"); ok {
			out += ", " + strings.Join(strings.Fields(line), " ")
		}
	}
	return out
}

// revision names the tree that was tried: as built in, else what git says of the
// folder that the command was given in.
func revision() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "of an unknown revision"
	}
	return strings.TrimSpace(string(out))
}
