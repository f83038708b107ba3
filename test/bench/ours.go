package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const terminateLimit = 30 * time.Second

func (l *lab) ourConfig(s *span, data, topic, delivery string) string {
	return fmt.Sprintf(`node: {id: bench, data_dir: %q}
admin: {listen: "127.0.0.1:0"}
log: {format: json}
connectors:
  - name: %s
    source: {host: %s, port: %d, user: %s, password: %s, table_patterns: ['%s']}
    outbox: {route_topic: %s}
    kafka: {brokers: [%q], delivery: %s, transactional_id_prefix: %s}
`, data, s.name, s.server.Host(), s.server.Port(), servers.CDCUser, servers.CDCPassword, s.pattern(), topic, l.kafka.Addr(), delivery, topic)
}

func (l *lab) runOurs(dir, text string) (*harness.Process, string, error) {
	config, log := filepath.Join(dir, "node.yaml"), filepath.Join(dir, "connector.log")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, log, err
	}
	p, err := harness.Start(l.binary, []string{"run", "--config", config}, log)
	return p, log, err
}

// seed lets this program start at the end of the binlog, note its position, and end.
// Copies of its data directory then begin there.
func (l *lab) seed(ctx context.Context, s *span) error {
	dir := filepath.Join(l.dir, "seed-"+s.name)
	s.seed = filepath.Join(dir, "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p, _, err := l.runOurs(dir, l.ourConfig(s, s.seed, "seed", "at_least_once"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, terminateLimit)
	defer cancel()
	if _, err := p.Await(ctx, "it streams",
		func(c harness.ConnectorStatus) bool { return c.Phase == "streaming" }); err != nil {
		return err
	}
	return p.Terminate(ctx)
}

func (l *lab) startOurs(ctx context.Context, j job, delivery string) (*running, error) {
	data := filepath.Join(j.dir, "data")
	if j.replay {
		if err := os.CopyFS(data, os.DirFS(j.span.seed)); err != nil {
			return nil, err
		}
		if err := os.Chmod(data, 0o700); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	p, log, err := l.runOurs(j.dir, l.ourConfig(j.span, data, j.topic, delivery))
	if err != nil {
		return nil, err
	}
	return &running{pid: p.PID(), began: began, log: log, admin: p.Admin, stop: func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), terminateLimit)
		defer cancel()
		return p.Terminate(ctx)
	}}, nil
}
