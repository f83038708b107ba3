package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// runDaemon works until ctx ends.
func runDaemon(ctx context.Context, cfg *config.Config, comp *node.Compiler, log *slog.Logger) error {
	n, err := node.New(cfg, node.Options{Compiler: comp, Logger: log, LimitMemory: true})
	if err != nil {
		return err
	}
	defer hearHangups(log)()
	log.Info("starting", "node", cfg.Node.ID, "version", node.Version().Version, "connectors", len(cfg.Connectors))
	err = n.Run(ctx)
	log.Info("stopped", "error", err)
	return err
}

// hearHangups keeps SIGHUP, which a closed terminal, logrotate and "systemctl reload"
// send, from ending the process, until the returned function is called.
func hearHangups(log *slog.Logger) (stop func()) {
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangups {
			log.Warn("SIGHUP has no effect: the configuration is read at the start, certificates, passwords and users anew " +
				"when they are needed; restart to use a changed configuration")
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}
