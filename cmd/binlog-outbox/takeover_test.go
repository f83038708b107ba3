package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// A connector for which Debezium has an offset in the worker's file does not begin as
// if it were new, unless it is told to; the error says how to go on from there.
func TestDebeziumsOffsetIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	offsets := filepath.Join(dir, "offsets.dat")
	worker := write(t, "worker.properties", "bootstrap.servers=127.0.0.1:1\noffset.storage.file.filename="+offsets+"\nbinlog.outbox.kafka.delivery=at_least_once\n")
	connector := write(t, "c.json", string(keys("shop")))
	start := func(args ...string) error {
		t.Helper()
		p := &program{environ: []string{"BINLOG_OUTBOX_DATA_DIR=" + dir}, worker: worker}
		cfg, err := p.load([]string{connector})
		if err != nil {
			t.Fatal(err)
		}
		comp, err := p.compiler(cfg.Admin.Reach())
		if err != nil {
			t.Fatal(err)
		}
		if len(args) > 0 {
			ignoreOffsets(cfg, comp)
		}
		c, err := comp.compile("shop", keys("shop"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Source.DebeziumOffsets, cfg.Connectors[0].Source.DebeziumOffsets; got != want {
			t.Errorf("over the REST API %q, in the file %q", got, want)
		}
		return (&sources{cfg: c}).debeziumWasHere()
	}
	put := func(text string) {
		if err := os.WriteFile(offsets, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(); err != nil {
		t.Errorf("without a file: %v", err)
	}
	put(`..["other",{"server":"shop"}]..{"gtids":"u:1"}`)
	if err := start(); err != nil {
		t.Errorf("with another connector's: %v", err)
	}
	put(`..["shop",{"server":"shop"}]..{"file":"b.1","pos":4,"gtids":"u:1-13","event":2,"row":1}`)
	err := start()
	if err == nil || !strings.Contains(err.Error(), "offset set shop --gtid-set u:1-13") || !strings.Contains(err.Error(), "--ignore-debezium-offset") {
		t.Errorf("with its own: %v", err)
	}
	if err := start("--ignore-debezium-offset"); err != nil {
		t.Errorf("told to begin: %v", err)
	}
	if err := os.Remove(offsets); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(offsets, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

// run says of every key without effect why it has none.
func TestRunTellsOfKeysThatItPassesOver(t *testing.T) {
	p := &program{worker: write(t, "worker.properties", "bootstrap.servers=127.0.0.1:1\nplugin.path=/x\noffset.storage.topic=connect-offsets\n"), tolerate: true,
		environ: []string{"BINLOG_OUTBOX_DATA_DIR=" + t.TempDir()}}
	if _, err := p.load([]string{write(t, "c.json", string(keys("a", "database.history.kafka.topic", "h", "nobody.knows", "1", "database.history", "x", "max.queue.size", "1")))}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	tellOfKeys(slog.New(slog.NewTextHandler(&b, nil)), p.lines, false)
	for _, want := range []string{"key=plugin.path", "key=nobody.knows", "key=max.queue.size", "level=WARN msg=\"this topic is not looked at"} {
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
	log := &lockedText{}
	stop := hearHangups(slog.New(slog.NewTextHandler(log, nil)))
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); !strings.Contains(log.text(), "SIGHUP"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("SIGHUP is not told")
		}
	}
	stop()
}

// The connector fails before it has published anything, and goes on when what was there
// is no longer.
func TestConnectorDoesNotBeginBesideDebeziumsOffset(t *testing.T) {
	offsets := write(t, "offsets.dat", `..["shop",{"server":"shop"}]..{"gtids":"u:1-13"}`)
	source, k := scriptedSource(t, 5), kafkatest.Start(t)
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
	n := runNode(t, cfg)
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
