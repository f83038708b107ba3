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

// runDaemon works until ctx ends.
func runDaemon(ctx context.Context, cfg *config.Config, comp *compiler, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	if _, set := os.LookupEnv("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(memoryLimit)
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
