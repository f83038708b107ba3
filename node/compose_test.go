package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// The configuration in docker-compose.yml is one that runs: a newcomer meets it first.
func TestComposeConfiguration(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	b := config.Builder{Checks: []config.Check{CheckRouting}}
	cfg, err := b.Build(config.YAML("docker-compose.yml", []byte(file.Configs["connector"].Content)),
		config.Environ([]string{"BINLOG_OUTBOX_NODE_ID=cdc-2"}))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Node.ID != "cdc-2" || len(cfg.Cluster.ParsedPeers()) != 3 || len(cfg.Connectors) != 1 {
		t.Errorf("node %q, %d peers, %d connectors", cfg.Node.ID, len(cfg.Cluster.ParsedPeers()), len(cfg.Connectors))
	}
	if err := raftConfig(cfg).Validate(); err != nil {
		t.Error(err)
	}
}
