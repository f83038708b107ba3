package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// process is the connector as a process of its own.
type process struct {
	binary, config, log string
	cmd                 *exec.Cmd
}

func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.CommandContext(ctx, p.binary, "run", "--config", p.config)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting the connector: %w", err)
	}
	return nil
}

// kill is kill -9; it does nothing when the process is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

func writeConfig(path, dir string, mysql *servers.MySQL, broker string) error {
	text := fmt.Sprintf(`node:
  id: demo
  data_dir: %s
admin:
  listen: 127.0.0.1:0
connectors:
  - name: shop
    source:
      host: %s
      port: %d
      user: %s
      password: %s
      table: shop.outbox
      start: earliest
      tls: {mode: disabled}
    outbox:
      additional: ["type:header:eventType"]
    kafka:
      brokers: [%q]
      create_topics: {partitions: 3, replication_factor: 1}
`, filepath.Join(dir, "data"), mysql.Host(), mysql.Port(), servers.CDCUser, servers.CDCPassword, broker)
	return os.WriteFile(path, []byte(text), 0o600)
}
