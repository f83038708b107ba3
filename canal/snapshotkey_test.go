package canal

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

func keyOf(t *testing.T, columns ...schema.Column) *snapshotKey {
	t.Helper()
	table := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}, Columns: columns}
	collations := map[string]string{}
	for i := range columns {
		table.PrimaryKey = append(table.PrimaryKey, i)
		collations[columns[i].Name] = "latin1_swedish_ci"
	}
	k, err := newSnapshotKey(table, collations)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Comparing the encoded bytes is comparing as the server does.
func TestSnapshotKeyOrder(t *testing.T) {
	one := func(c schema.Column) []schema.Column { c.Name = "id"; return []schema.Column{c} }
	for _, c := range []struct {
		name    string
		columns []schema.Column
		sorted  [][]string
	}{
		{"signed", one(schema.Column{Type: schema.BigInt}), [][]string{{"-9223372036854775808"}, {"-10"}, {"-9"}, {"0"},
			{"9"}, {"10"}, {"9223372036854775807"}}},
		{"unsigned", one(schema.Column{Type: schema.BigInt, Unsigned: true}),
			[][]string{{"0"}, {"9"}, {"10"}, {"18446744073709551615"}}},
		{"decimal", one(schema.Column{Type: schema.Decimal, Scale: 2}), [][]string{{"-100.00"}, {"-99.50"}, {"-99.05"},
			{"-0.01"}, {"0.00"}, {"0.01"}, {"9.99"}, {"10.00"}, {"100.00"}}},
		{"time", one(schema.Column{Type: schema.Time, FSP: 1}), [][]string{{"-838:59:59.0"}, {"-10:00:00.5"}, {"-10:00:00.0"},
			{"-00:00:00.1"}, {"00:00:00.0"}, {"99:00:00.0"}, {"100:00:00.0"}}},
		{"datetime", one(schema.Column{Type: schema.DateTime}), [][]string{{"0000-00-00 00:00:00"}, {"1999-12-31 23:59:59"},
			{"2000-01-01 00:00:00"}}},
		{"bytes", one(schema.Column{Type: schema.VarBinary}), [][]string{{""}, {"\x00"}, {"\x00\x00"}, {"\x00\x01"}, {"\x01"},
			{"a"}, {"a\x00"}, {"a\x00b"}, {"ab"}, {"\xff"}, {"\xff\xff"}}},
		{"two", []schema.Column{{Name: "a", Type: schema.VarBinary}, {Name: "b", Type: schema.Int}},
			[][]string{{"", "9"}, {"a", "-1"}, {"a", "2"}, {"a\x00", "1"}, {"b", "-7"}}},
	} {
		k := keyOf(t, c.columns...)
		var places [][]byte
		for _, key := range c.sorted {
			p, err := k.sortable(key, nil)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, p)
		}
		if !slices.IsSortedFunc(places, bytes.Compare) {
			t.Errorf("%s: %x is not sorted", c.name, places)
		}
		for i := range places[1:] {
			if bytes.Equal(places[i], places[i+1]) {
				t.Errorf("%s: %q and %q have one place", c.name, c.sorted[i], c.sorted[i+1])
			}
		}
	}
}

func TestSnapshotKeyInSQL(t *testing.T) {
	k := keyOf(t, schema.Column{Name: "re`gion", Type: schema.VarChar, Charset: "latin1", Length: 9},
		schema.Column{Name: "id", Type: schema.VarBinary}, schema.Column{Name: "at", Type: schema.Date})
	const want = "(`re``gion` > CONVERT(_utf8mb4 x'612762' USING latin1) COLLATE latin1_swedish_ci)" +
		" OR (`re``gion` = CONVERT(_utf8mb4 x'612762' USING latin1) COLLATE latin1_swedish_ci AND `id` > x'00ff')" +
		" OR (`re``gion` = CONVERT(_utf8mb4 x'612762' USING latin1) COLLATE latin1_swedish_ci AND `id` = x'00ff' AND `at` " +
		"> '2024-02-29')"
	key := []string{"a'b", "\x00\xff", "2024-02-29"}
	if got := k.after(key); got != want {
		t.Errorf("condition is\n%s, want\n%s", got, want)
	}
	stored := k.stored(key)
	if diff := cmp.Diff([]string{"a'b", "00ff", "2024-02-29"}, stored); diff != "" {
		t.Error(diff)
	}
	back, err := k.load(stored)
	if diff := cmp.Diff(key, back); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, bad := range [][]string{{"a"}, {"a", "zz", "2024-02-29"}} {
		if _, err := k.load(bad); err == nil {
			t.Errorf("%q was taken for a key", bad)
		}
	}
}
