package debezium

import (
	"slices"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// errors.tolerance=all does what Connect does with the rows of a source: what can't be
// routed is skipped; what can't be sent, unless that fails Connect's transaction.
func TestToleranceIsConnects(t *testing.T) {
	for name, test := range map[string]struct {
		keys, worker string
		row, record  config.OnError
	}{
		"not given": {"", "", config.OnErrorStop, config.OnErrorStop},
		"none":      {`, "errors.tolerance": "none"`, "", config.OnErrorStop, config.OnErrorStop},
		"all":       {`, "errors.tolerance": "ALL"`, "", config.OnErrorSkip, config.OnErrorSkip},
		"exactly once": {`, "errors.tolerance": "all"`, "exactly.once.source.support=enabled\n", config.OnErrorSkip,
			config.OnErrorStop},
		"exactly once needed": {`, "errors.tolerance": "all", "exactly.once.support": "required"`, "", config.OnErrorSkip,
			config.OnErrorStop},
		"ours": {`, "errors.tolerance": "all", "binlog.outbox.errors.row": "dead_letter", "binlog.outbox.errors.record": "dead_letter", "errors.deadletterqueue.topic.name": "x"`,
			"", config.OnErrorDeadLetter, config.OnErrorDeadLetter},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Connectors: []File{{Name: "c.json", Data: []byte(`{"name": "c", "connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": "p",
				"database.hostname": "h", "database.user": "u", "database.password": "p", "database.server.id": "1", "table.include.list": "shop.outbox", "snapshot.mode": "no_data",
				"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter"` + test.keys + `}`)}}}
			o.Worker = &File{Name: "w.properties",
				Data: []byte("bootstrap.servers=k:9092\nkey.converter=org.apache.kafka.connect.storage.StringConverter\nvalue.converter=org.apache.kafka.connect.storage.StringConverter\n" + test.worker)}
			c, err := Convert(o)
			if err != nil {
				t.Fatal(err)
			}
			row, record := config.OnErrorStop, config.OnErrorStop
			for _, s := range c.Settings {
				value, _ := s.Value.(string)
				switch s.Path {
				case "connectors[0].errors.row":
					row = config.OnError(value)
				case "connectors[0].errors.record":
					record = config.OnError(value)
				}
			}
			if row != test.row || record != test.record {
				t.Errorf("errors.row %s, errors.record %s, want %s, %s", row, record, test.row, test.record)
			}
			if i := slices.IndexFunc(c.Lines, func(l Line) bool {
				return l.Outcome == Unsupported ||
					l.Outcome == Unknown
			}); i >= 0 {
				t.Error(c.Lines[i])
			}
		})
	}
}
