package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// ranNode is a data directory in which a node has worked, and a snapshot of it.
func ranNode(t *testing.T) (dataDir, snapshot string) {
	t.Helper()
	dataDir = t.TempDir()
	cfg := ha.DefaultConfig()
	cfg.NodeID, cfg.DataDir = "n1", filepath.Join(dataDir, "raft")
	n, err := ha.Open(cfg, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	for !n.Status().Ready {
		time.Sleep(time.Millisecond)
	}
	snapshot = filepath.Join(t.TempDir(), "saved")
	f, err := os.Create(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.SetRunState(ctx, "orders", ha.Paused, "", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := n.Snapshot(ctx, f, "", "ann"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return dataDir, snapshot
}

func TestB094ClusterCommands(t *testing.T) {
	dir, snapshot := ranNode(t)
	empty := t.TempDir()
	tests := []struct {
		name string
		args []string
		code int
		want string // in either output
	}{
		{"no directory", []string{"recover"}, exitUsage, "--data-dir"},
		{"the directory of a file", []string{"recover", "--config", write(t, "node.yaml",
			"node: {id: n1, data_dir: "+dir+"}\nconnectors: [{name: a, source: {host: m, user: u, password: "+
				"\"${env:NOT_SET}\", table: a.b}, kafka: {brokers: [\"k:1\"]}}]\n")}, exitOK, "voters from now on: n1"},
		{"an argument too many", []string{"recover", "--data-dir", dir, "n1"}, exitUsage, "n1"},
		{"empty directory", []string{"recover", "--data-dir", empty}, exitFailed, "no state to recover from"},
		{"unknown survivor", []string{"recover", "--data-dir", dir, "--peers", "n1,n2"}, exitFailed, `"n2"`},
		{"look first", []string{"recover", "--data-dir", dir}, exitOK, "nothing was changed"},
		{"do it", []string{"recover", "--data-dir", dir, "--peers", "n1", "--yes"}, exitOK, "connector orders goes on after"},
		{"no snapshot named", []string{"restore", "--data-dir", empty, "--node", "n1"}, exitUsage, "--from"},
		{"over state", []string{"restore", "--data-dir", dir, "--node", "n1", "--from", snapshot}, exitFailed,
			"empty directory"},
		{"restore", []string{"restore", "--data-dir", empty, "--node", "n1", "--from", snapshot}, exitOK,
			"voters from now on: n1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := command{}.run(t, append([]string{"cluster"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
				t.Errorf("exit code %d, want %d; said %q, %q, want %q", code, tt.code, stdout, stderr, tt.want)
			}
		})
	}
	code, stdout, stderr := command{environ: []string{"BINLOG_OUTBOX_DATA_DIR=" + dir}}.run(t, "cluster", "recover", "-o",
		"json")
	var r ha.Recovered
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitOK || r.NodeID != "n1" || r.LastIndex == 0 {
		t.Errorf("exit code %d, %v, said %q, %q", code, err, stdout, stderr)
	}
}
