package node

import (
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Heartbeat records as Debezium's HeartbeatImpl and SchemaFactory make them and
// Connect's converters write them.
func TestHeartbeatRecord(t *testing.T) {
	for _, c := range []struct{ format, key, value string }{
		{"", "Struct{serverName=shop}", "Struct{ts_ms=1767355200000}"},
		{"format: {key: {type: json, schemas: false}, value: {type: json, schemas: false}}", `{"serverName":"shop"}`,
			`{"ts_ms":1767355200000}`},
		{"format: {key: {type: json, schemas: true}, value: {type: json, schemas: true}}",
			`{"schema":{"type":"struct","fields":[{"type":"string","optional":false,"field":"serverName"}],"optional":false,"name":"io.debezium.connector.common.ServerNameKey","version":1},"payload":{"serverName":"shop"}}`,
			`{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"name":"io.debezium.connector.common.Heartbeat","version":1},"payload":{"ts_ms":1767355200000}}`},
	} {
		r, err := newRoute(heartbeatConnector(t, c.format), nil)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := r.Heartbeat(&txn.Arena{}, time.UnixMilli(1767355200000))
		if err != nil {
			t.Fatal(err)
		}
		if string(rec.Key) != c.key || string(rec.Value) != c.value {
			t.Errorf("key %s, value %s", rec.Key, rec.Value)
		}
		if rec.Topic != "beats.shop" || rec.Partition != 0 || rec.Timestamp != -1 || len(rec.Headers) != 0 {
			t.Errorf("%+v", rec)
		}
	}
}

// BinaryDataConverter takes bytes alone, in Debezium too. That is known before the start.
func TestHeartbeatsNeedAConverter(t *testing.T) {
	_, err := newRoute(heartbeatConnector(t, "format: {value: {type: binary}}"), nil)
	if err == nil || !strings.Contains(err.Error(), "heartbeat.interval") {
		t.Errorf("%v", err)
	}
}

func heartbeatConnector(t *testing.T, format string) *config.Connector {
	t.Helper()
	cfg, err := config.Build(config.YAML("test", []byte(`
node: {id: n1, data_dir: `+t.TempDir()+`}
connectors:
  - name: orders
    topic_prefix: shop
    source: {host: 127.0.0.1, user: cdc, table: shop.outbox, start: earliest}
    kafka: {brokers: ["127.0.0.1:1"]}
    heartbeat: {interval: 10s, topic_prefix: beats}
    `+format+`
`)))
	if err != nil {
		t.Fatal(err)
	}
	return &cfg.Connectors[0]
}
