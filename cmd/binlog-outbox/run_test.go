package main

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// run says of every key without effect why it has none.
func TestRunTellsOfKeysThatItPassesOver(t *testing.T) {
	p := &program{worker: write(t, "worker.properties", goodWorker+"plugin.path=/x\n"), tolerate: true,
		environ: []string{"BINLOG_OUTBOX_DATA_DIR=" + t.TempDir()}}
	if _, err := p.load([]string{write(t, "c.json", strings.Replace(goodJSON, `"config": {`,
		`"config": {"database.history.kafka.topic": "h", "nobody.knows": "1", "database.history": "x", "max.queue.size": "1",`, 1))}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	tellOfKeys(slog.New(slog.NewTextHandler(&b, nil)), p.lines)
	for _, want := range []string{"key=plugin.path", "key=nobody.knows", "key=max.queue.size"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not told:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "key=database.hostname") {
		t.Errorf("a key that counts is told:\n%s", b.String())
	}
}

// SIGHUP does not end the process, and is told.
func TestHangupIsTold(t *testing.T) {
	guard := make(chan os.Signal, 1) // or a failure of the test would end all others
	signal.Notify(guard, syscall.SIGHUP)
	defer signal.Stop(guard)
	told, log := io.Pipe()
	stop := hearHangups(slog.New(slog.NewTextHandler(log, nil)))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(told).ReadString('\n'); err != nil || !strings.Contains(line, "SIGHUP") {
		t.Errorf("it is told as %q, %v", line, err)
	}
	stop()
}
