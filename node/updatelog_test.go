package node

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// on_update: warn and error log what is passed over, in their own level, with the table
// and not with what is in the row, and not once for each of many.
func TestUpdatesAreLogged(t *testing.T) {
	for how, level := range map[string]string{router.UpdateWarn: "WARN", router.UpdateError: "ERROR"} {
		node, err := config.Build(config.YAML("good.yaml", []byte(exampleYAML())))
		if err != nil {
			t.Fatal(err)
		}
		c := &node.Connectors[0]
		c.Outbox.OnUpdate = how
		r, err := newRoute(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		updates := newUpdateLog(slog.New(slog.NewTextHandler(&log, nil)), how)
		r.PassedOver = updates.note
		table := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}, PrimaryKey: []int{0}}
		image := []any{}
		for _, name := range []string{"id", "aggregatetype", "aggregateid", "type", "payload"} {
			table.Columns = append(table.Columns, schema.Column{Name: name, Type: schema.VarChar, Length: 255,
				Charset: "utf8mb4"})
			image = append(image, "secret-"+name)
		}
		for range 3 {
			_, sent, err := r.Encode(&txn.Arena{}, &schema.Row{Table: table, Op: schema.Update, Before: image, After: image})
			if sent || err != nil {
				t.Fatalf("sent %t, %v", sent, err)
			}
		}
		updates.last = updates.last.Add(-time.Minute)
		updates.note(table.Name)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "level="+level) ||
			!strings.Contains(lines[0], "table=shop.outbox updates=1") || !strings.Contains(lines[1], "updates=3") {
			t.Errorf("%s logged\n%s", how, log.String())
		}
		if strings.Contains(log.String(), "secret") {
			t.Error("the row is in the log")
		}
	}
}
