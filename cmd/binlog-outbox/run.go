package main

import (
	"context"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// runDaemon works until ctx ends.
func runDaemon(ctx context.Context, cfg *config.Config, comp *compiler, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	d, err := newDaemon(cfg, comp, log, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	d.fleet.limitMemory(newMemoryLimit())
	log.Info("starting", "node", cfg.Node.ID, "version", version().Version, "connectors", len(cfg.Connectors))
	err = d.run(ctx)
	log.Info("stopped", "error", err)
	return err
}
