package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// A connector for which Debezium has an offset in the worker's file does not begin as
// if it were new, unless it is told to; the error says how to go on from there.
func TestDebeziumsOffsetIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	offsets := filepath.Join(dir, "offsets.dat")
	worker := debezium.File{Name: "worker.properties", Data: []byte("bootstrap.servers=127.0.0.1:1\noffset.storage.file.filename=" + offsets + "\nbinlog.outbox.kafka.delivery=at_least_once\n")}
	start := func(ignore bool) error {
		t.Helper()
		conversion, err := debezium.Convert(debezium.Options{Worker: &worker, Connectors: []debezium.File{{Name: "c.json", Data: keys("shop")}}})
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Build(conversion.Layer(), config.Environ([]string{"BINLOG_OUTBOX_DATA_DIR=" + dir}))
		if err != nil {
			t.Fatal(err)
		}
		comp := &Compiler{Worker: &worker}
		if ignore {
			comp.IgnoreDebeziumOffsets(cfg)
		}
		c, err := comp.Compile("shop", keys("shop"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Source.DebeziumOffsets, cfg.Connectors[0].Source.DebeziumOffsets; got != want {
			t.Errorf("over the REST API %q, in the file %q", got, want)
		}
		return debeziumWasHere(c)
	}
	put := func(text string) {
		if err := os.WriteFile(offsets, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(false); err != nil {
		t.Errorf("without a file: %v", err)
	}
	put(`..["other",{"server":"shop"}]..{"gtids":"u:1"}`)
	if err := start(false); err != nil {
		t.Errorf("with another connector's: %v", err)
	}
	put(`..["shop",{"server":"shop"}]..{"file":"b.1","pos":4,"gtids":"u:1-13","event":2,"row":1}`)
	err := start(false)
	if err == nil || !strings.Contains(err.Error(), "offset set shop --gtid-set u:1-13") || !strings.Contains(err.Error(), "--ignore-debezium-offset") {
		t.Errorf("with its own: %v", err)
	}
	if err := start(true); err != nil {
		t.Errorf("told to begin: %v", err)
	}
	if err := os.Remove(offsets); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(offsets, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(false); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

// The connector fails before it has published anything, and goes on when what was there
// is no longer.
func TestConnectorDoesNotBeginBesideDebeziumsOffset(t *testing.T) {
	offsets := write(t, "offsets.dat", `..["shop",{"server":"shop"}]..{"gtids":"u:1-13"}`)
	source, k := canaltest.StartOutbox(t, 5), kafkatest.Start(t)
	cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, `
node: {id: n1, data_dir: %q}
admin: {listen: "127.0.0.1:0"}
connectors:
  - name: shop
    source: {host: 127.0.0.1, port: %d, user: repl, password: secret, table_patterns: [shop.outbox], start: earliest, debezium_offsets: %q}
    kafka: {brokers: [%q], delivery: at_least_once, create_topics: {replication_factor: 1}}
`, t.TempDir(), source.Port(), offsets, k.Brokers()[0])))
	if err != nil {
		t.Fatal(err)
	}
	n := runNode(t, cfg, Options{})
	eventually(t, "the connector fails", func() bool { return n.of("shop").State == "failed" })
	c := n.of("shop")
	if c.LastError == nil || c.LastError.Code != "debezium_offset_found" || !strings.Contains(c.LastError.Message, "--gtid-set u:1-13") || c.Published != 0 {
		t.Errorf("%+v", c)
	}
	if err := os.Remove(offsets); err != nil {
		t.Fatal(err)
	}
	n.must(t, 204, "POST", "/connectors/shop/restart", "")
	eventually(t, "all rows", func() bool { return n.of("shop").Published == 5 })
}
