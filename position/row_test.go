package position

import "testing"

func TestRowsAreText(t *testing.T) {
	const sid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	for _, text := range []string{sid + ":23#2", sid + ":tag:23#1", "0-1-7#40", "binlog.000003:4567890123#1",
		"a:b.1:4#9"} {
		r, err := ParseRow(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if r.String() != text {
			t.Errorf("%s came back as %s", text, r)
		}
	}
	for _, text := range []string{"", sid + ":23", sid + ":23#0", sid + ":23#x", "#1", "binlog:4#1", "binlog.1:x#1",
		"nonsense#1", sid + ":0#1", "snapshot:7#1", "snapshot:7:0#1", "snapshot:x:7#1"} {
		if r, err := ParseRow(text); err == nil {
			t.Errorf("%q was read as %s", text, r)
		}
	}
	m := Commit{GTID: GTID{Domain: 0, Server: 1, Seq: 7}, File: "b.1", Pos: 9}
	if got := m.Row(2).String(); got != "0-1-7#3" {
		t.Error(got)
	}
	m.GTID = GTID{}
	if got := m.Row(0).String(); got != "b.1:9#1" {
		t.Error(got)
	}
}

func TestPositionsCoverRows(t *testing.T) {
	const sid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	set, err := ParseSet(MySQL, sid+":1-5")
	if err != nil {
		t.Fatal(err)
	}
	inTx, err := ParseGTID(sid + ":7")
	if err != nil {
		t.Fatal(err)
	}
	gtids := Position{Flavor: MySQL, Set: set, File: "b.000009", Pos: 4,
		Partials: []Partial{{GTID: inTx, Rows: inserted(2)}}}
	files := Position{Flavor: MySQL, File: "b.000010", Pos: 400}
	for _, test := range []struct {
		at   Position
		row  string
		want bool
	}{
		{gtids, sid + ":5#1", true}, {gtids, sid + ":6#1", false},
		{gtids, sid + ":7#2", false}, {gtids, sid + ":7#3", false},
		{gtids, "b.000001:4#1", false},
		{files, "b.000009:500#1", true}, {files, "b.000010:400#3", true}, {files, "b.000010:401#1", false},
		{files, "c.000001:1#1", false}, {files, sid + ":1#1", false},
		{Position{}, "b.000001:4#1", false},
	} {
		r, err := ParseRow(test.row)
		if err != nil {
			t.Fatal(err)
		}
		if got := test.at.CoversRow(r); got != test.want {
			t.Errorf("%s covers %s: %v", test.at, test.row, got)
		}
	}
}
