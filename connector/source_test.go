package connector

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Files and offsets of one server say nothing on another.
func TestF14PositionMovesToAnotherServer(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	set, err := position.ParseSet(position.MySQL, a+":1-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		from position.Position
		to   string
		file string
	}{
		{"the same server", position.Position{Server: a, Set: set, File: "binlog.000007", Pos: 9}, a, "binlog.000007"},
		{"another server", position.Position{Server: a, Set: set, File: "binlog.000007", Pos: 9}, b, ""},
		{"of no known server", position.Position{Set: set, File: "binlog.000007", Pos: 9}, b, "binlog.000007"},
		{"by file", position.Position{Server: a, File: "binlog.000007", Pos: 9}, b, "binlog.000007"},
		{"nothing but a file", position.Position{Server: a, Set: position.NewSet(position.MySQL), File: "binlog.000007", Pos: 9}, b, "binlog.000007"},
	} {
		got := onServer(c.from, c.to)
		if got.Server != c.to || got.File != c.file || (got.Pos == 9) != (c.file != "") || got.IsZero() {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
