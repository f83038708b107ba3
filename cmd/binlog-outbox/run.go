package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// Without GOMEMLIMIT the collector keeps to this, as far as live data allows. The
// queues are bounded well below it; it keeps garbage from doubling what a large
// transaction needs.
const memoryLimit = 128 << 20

// Without GOGC as much garbage as half of the live data may gather. The live data is
// what the queues hold, so this is some tens of megabytes less in a catch-up for a
// few per cent of its CPU time.
const gcPercent = 50

// runDaemon works until ctx ends.
func runDaemon(ctx context.Context, cfg *config.Config, comp *compiler, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	d, err := newDaemon(cfg, comp, log, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	log.Info("starting", "node", cfg.Node.ID, "version", version().Version, "connectors", len(cfg.Connectors))
	err = d.run(ctx)
	log.Info("stopped", "error", err)
	return err
}
