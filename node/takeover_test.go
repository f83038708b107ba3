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
	"github.com/binlog-outbox/binlog-outbox/debezium/offset/offsettest"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// A connector for which Debezium has an offset in the worker's file does not begin as
// if it were new, unless it is told to.
func TestDebeziumsOffsetIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	offsets := filepath.Join(dir, "offsets.dat")
	worker := debezium.File{Name: "worker.properties", Data: []byte("bootstrap.servers=127.0.0.1:1\noffset.storage.file.filename=" + offsets + "\nbinlog.outbox.kafka.delivery=at_least_once\n")}
	start := func(ignore bool) error {
		t.Helper()
		conversion, err := debezium.Convert(debezium.Options{Worker: &worker, Connectors: []debezium.File{{Name: "c.json", Data: keys("shop", "include.query", "true")}}})
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
		c, err := comp.Compile("shop", keys("shop", "include.query", "true"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.Source.DebeziumOffsets, cfg.Connectors[0].Source.DebeziumOffsets; got != want || !c.Source.DebeziumQuery {
			t.Errorf("over the REST API %q, in the file %q; include.query %t", got, want, c.Source.DebeziumQuery)
		}
		_, err = (&sources{cfg: c}).inherited(t.Context())
		return err
	}
	put := func(data []byte) {
		if err := os.WriteFile(offsets, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(false); err != nil {
		t.Errorf("without a file: %v", err)
	}
	put(offsettest.File(`["other",{"server":"shop"}]`, `{"gtids":"u:1"}`))
	if err := start(false); err != nil {
		t.Errorf("with another connector's: %v", err)
	}
	own := offsettest.File(`["shop",{"server":"shop"}]`, `{"file":"b.1","pos":4,"snapshot":"INITIAL"}`)
	put(own)
	err := start(false)
	if err == nil || !strings.Contains(err.Error(), "inside of a snapshot") || !strings.Contains(err.Error(), "--ignore-debezium-offset") {
		t.Errorf("cut in its snapshot: %v", err)
	}
	if err := start(true); err != nil {
		t.Errorf("told to begin: %v", err)
	}
	put(own[:len(own)-9])
	if err := start(false); err == nil || !strings.Contains(err.Error(), "not written as a whole") {
		t.Errorf("half a file: %v", err)
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

// The connector begins where Debezium has stopped, whatever its source.start says, and
// fails before it has published anything where it can't.
func TestConnectorBeginsWhereDebeziumStopped(t *testing.T) {
	const sid = canaltest.SID
	for name, test := range map[string]struct {
		offset string
		rows   uint64
		err    string
	}{
		"behind a transaction":  {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-3"}`, 2, ""},
		"inside of one":         {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-3","event":2,"row":1,"ts_sec":1700000000}`, 1, ""},
		"of one that is not it": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-3","event":2,"row":1,"ts_sec":1700000009}`, 0, "it was committed at another time"},
		"of another server":     {`{"file":"binlog.000001","pos":4,"gtids":"` + sid[:35] + `0:1-3"}`, 0, "already published"},
		"ahead of the server":   {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-5","event":2,"row":1}`, 0, "the server has none after that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offsets := write(t, "offsets.dat", string(offsettest.File(`["shop",{"server":"shop"}]`, test.offset)))
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
			if test.err == "" {
				source.Commit(1)
				eventually(t, "all rows", func() bool { return n.of("shop").Published == test.rows+1 })
				return
			}
			eventually(t, "the connector fails", func() bool { return n.of("shop").State == "failed" })
			c := n.of("shop")
			if c.LastError == nil || c.LastError.Code != "debezium_offset_found" || !strings.Contains(c.LastError.Message, test.err) || c.Published != 0 {
				t.Errorf("%+v", c)
			}
			if err := os.Remove(offsets); err != nil {
				t.Fatal(err)
			}
			n.must(t, 204, "POST", "/connectors/shop/restart", "")
			eventually(t, "all rows", func() bool { return n.of("shop").Published == 5 })
		})
	}
}
