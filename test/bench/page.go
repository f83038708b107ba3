package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// page is the whole report.
func (l *lab) page(ctx context.Context, ran []scenario, took time.Duration) (string, error) {
	version, err := l.mysql.Value(ctx, "SELECT VERSION()")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\nWritten by `%s` in %v on %s. All figures are of that one run, on one machine with "+
		"all servers on it; machines differ, so the ratios count.\n\n",
		l.command, took.Round(time.Second), l.began.UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&b, "- binlog-outbox at commit %s, %s\n", commit(ctx), runtime.Version())
	fmt.Fprintf(&b, "- Debezium %s on Kafka Connect %s, %s, heap %s and arguments of Connect's own start script; "+
		"*tuned* is %s\n", servers.DebeziumVersion, servers.KafkaVersion, java(ctx), connectHeap, settings(tuned()))
	fmt.Fprintf(&b, "- *exactly once* is a distributed worker with exactly.once.source.support=enabled\n- MySQL %s "+
		"(%s), Kafka %s (one broker, G1, heap 1g)\n", version, strings.Join(mysqlArgs, " "), servers.KafkaVersion)
	fmt.Fprintf(&b, "- %d CPUs, %s, %s/%s, load %s at the start\n", runtime.NumCPU(), memory(), runtime.GOOS,
		runtime.GOARCH, l.load)
	fmt.Fprintf(&b, "- %d rounds of each, in turn; median (least–greatest). In brackets: how many times better the "+
		"first line is.\n", l.rounds)
	b.WriteString("- In every run every row arrived exactly once, or the run would have ended with an error.\n\n")
	b.WriteString(l.targets())
	for _, s := range ran {
		b.WriteByte('\n')
		b.WriteString(s.report(l))
	}
	b.WriteString("\nHow long consumers wait at a failover is in [reliability.md](reliability.md).\n")
	return b.String(), nil
}

// commit is the revision of the working tree, marked when it has changes.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func java(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return "Java of test/servers"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.ReplaceAll(line, `"`, "")
}

func memory() string {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.Join(strings.Fields(line), " ")
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
