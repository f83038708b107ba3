package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

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
	worker := debezium.File{Name: "worker.properties",
		Data: []byte("bootstrap.servers=127.0.0.1:1\noffset.storage.file.filename=" + offsets +
			"\nbinlog.outbox.kafka.delivery=at_least_once\n")}
	start := func(ignore bool) error {
		t.Helper()
		conversion, err := debezium.Convert(debezium.Options{Worker: &worker,
			Connectors: []debezium.File{{Name: "c.json", Data: keys("shop", "include.query", "true")}}})
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
		if got, want := c.Source.DebeziumOffsets, cfg.Connectors[0].Source.DebeziumOffsets; got != want ||
			!c.Source.DebeziumQuery {
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
	if err == nil || !strings.Contains(err.Error(), "inside of a snapshot") ||
		!strings.Contains(err.Error(), "--ignore-debezium-offset") {
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
		"behind a transaction": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-3"}`, 2, ""},
		"inside of one": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid +
			`:1-3","event":2,"row":1,"ts_sec":1700000000}`, 1, ""},
		"of one that is not it": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid +
			`:1-3","event":2,"row":1,"ts_sec":1700000009}`, 0, "it was committed at another time"},
		"of another server": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid[:35] + `0:1-3"}`, 0, "already published"},
		"purged behind it": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-2"}`, 0,
			"has purged binlogs that were not read yet"},
		"ahead of the server": {`{"file":"binlog.000001","pos":4,"gtids":"` + sid + `:1-5","event":2,"row":1}`, 0,
			"the server has none after that"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			offsets := write(t, "offsets.dat", string(offsettest.File(`["shop",{"server":"shop"}]`, test.offset)))
			source, k := canaltest.StartOutbox(t, 5), kafkatest.Start(t)
			if name == "purged behind it" {
				source.Purged = sid + ":1-3"
			}
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
			if c.LastError == nil || c.LastError.Code != "debezium_offset_found" ||
				!strings.Contains(c.LastError.Message, test.err) || c.Published != 0 {
				t.Errorf("%+v", c)
			}
			if source.Purged != "" {
				return
			}
			if err := os.Remove(offsets); err != nil {
				t.Fatal(err)
			}
			n.must(t, 204, "POST", "/connectors/shop/restart", "")
			eventually(t, "all rows", func() bool { return n.of("shop").Published == 5 })
		})
	}
}

// An offset in a topic is waited for while Connect says that Debezium's connector may
// still publish; the connector's own topic counts before the worker's.
func TestConnectorWaitsUntilDebeziumIsStopped(t *testing.T) {
	const sid = canaltest.SID
	source, k := canaltest.StartOutbox(t, 5), kafkatest.Start(t)
	for _, topic := range []string{"connect-offsets", "own-offsets", "connect-status"} {
		k.Topic(topic, 2, nil)
	}
	put := func(topic, key, value string) {
		t.Helper()
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers()...), kgo.DefaultProduceTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	put("connect-status", "status-connector-shop", `{"state":"RUNNING"}`)
	put("connect-status", "status-task-shop-0", `{"state":"RUNNING"}`)
	worker := workerFile(k.Brokers()[0],
		"offset.storage.topic=connect-offsets\nstatus.storage.topic=connect-status\nbinlog.outbox.kafka.delivery=at_least_once\n")
	conversion, err := debezium.Convert(debezium.Options{Worker: worker,
		Connectors: []debezium.File{{Name: "c.json", Data: keys("shop",
			"offsets.storage.topic", "own-offsets", "database.port", strconv.Itoa(source.Port()), "database.user",
			canaltest.User,
			"database.password", canaltest.Password,
			"table.include.list", "sho..outbox", "binlog.outbox.retry.max", "200ms", "binlog.outbox.retry.initial", "50ms",
			"binlog.outbox.kafka.create_topics.replication_factor", "1")}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Build(conversion.Layer(), config.Environ([]string{"BINLOG_OUTBOX_DATA_DIR=" + t.TempDir(),
		"BINLOG_OUTBOX_ADMIN_LISTEN=127.0.0.1:0"}))
	if err != nil {
		t.Fatal(err)
	}
	n := runNode(t, cfg, Options{})
	waits := func(why string) {
		t.Helper()
		eventually(t, "the connector waits", func() bool {
			e := n.of("shop").LastError
			return e != nil && e.Code == "debezium_offset_found" && strings.Contains(e.Message, why)
		})
		if c := n.of("shop"); c.Published != 0 || c.State == "failed" {
			t.Errorf("%+v", c)
		}
	}
	waits("RUNNING") // and has noted nothing so far
	put("connect-offsets", `["shop",{"server":"shop"}]`, `{"file":"binlog.000001","pos":4,"gtids":"`+sid+`:1"}`)
	put("own-offsets", `["shop",{"server":"shop"}]`, `{"file":"binlog.000001","pos":4,"gtids":"`+sid+`:1-2"}`)
	put("connect-status", "status-connector-shop", `{"state":"STOPPED"}`)
	waits("its task is RUNNING")
	put("connect-status", "status-task-shop-0", `{"state":"UNASSIGNED"}`)
	eventually(t, "the rows after the offset", func() bool { return n.of("shop").Published == 3 })
}
