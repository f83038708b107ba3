package schema

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func cloneMap(m TableMap) TableMap {
	m.Types, m.Metas, m.NullBitmap = slices.Clone(m.Types), slices.Clone(m.Metas), slices.Clone(m.NullBitmap)
	m.Names, m.Signedness = slices.Clone(m.Names), slices.Clone(m.Signedness)
	m.DefaultCharset, m.ColumnCharset = slices.Clone(m.DefaultCharset), slices.Clone(m.ColumnCharset)
	m.EnumSetDefaultCharset, m.EnumSetColumnCharset = slices.Clone(m.EnumSetDefaultCharset),
		slices.Clone(m.EnumSetColumnCharset)
	m.EnumValues, m.SetValues = slices.Clone(m.EnumValues), slices.Clone(m.SetValues)
	return m
}

// bare takes away what only binlog_row_metadata=FULL has.
func bare(m TableMap) TableMap {
	m = cloneMap(m)
	m.Names, m.EnumValues, m.SetValues, m.PrimaryKey = nil, nil, nil, nil
	return m
}

// ancient takes away all optional metadata, as servers before MySQL 8.0 write it.
func ancient(m TableMap) TableMap {
	m = bare(m)
	m.Signedness, m.DefaultCharset, m.ColumnCharset = nil, nil, nil
	m.EnumSetDefaultCharset, m.EnumSetColumnCharset = nil, nil
	return m
}

// Today's columns are never laid over rows that do not have them.
func TestB037CheckRefusesAnotherShape(t *testing.T) {
	r := recordings(t)["mysql-9.7.json"]
	info, _ := r.tables(t)
	set := func(column string, wire byte, meta uint16) func(m *TableMap) {
		i := info.Column(column)
		return func(m *TableMap) { m.Types[i], m.Metas[i] = wire, meta }
	}
	column := func(name string) int { return info.Column(name) + 1 }
	cases := []struct {
		name   string
		change func(m *TableMap)
		column int
		says   string
	}{
		{"column dropped", func(m *TableMap) { m.Types, m.Metas = m.Types[1:], m.Metas[1:] }, 0, "columns"},
		{"column added", func(m *TableMap) {
			m.Types, m.Metas = append(m.Types, wireTiny), append(m.Metas, 0)
			m.NullBitmap = append(m.NullBitmap, 0xff)
		}, 0, "columns"},
		{"integer wider", set("i1", wireLongLong, 0), column("i1"), "i1"},
		{"decimal scale", set("n2", wireNewDecimal, 10<<8|2), column("n2"), "decimal(10,2)"},
		{"decimal precision", set("n2", wireNewDecimal, 11<<8), column("n2"), "decimal(11,0)"},
		{"bit length", set("bit9", wireBit, 2<<8), column("bit9"), "bit(16)"},
		{"fraction digits", set("ti3", wireTime2, 4), column("ti3"), "time(4)"},
		{"old time with a fraction", set("ti3", wireTime, 0), column("ti3"), "time(0)"},
		{"datetime to timestamp", set("dt6", wireTimestamp2, 6), column("dt6"), "timestamp(6)"},
		{"varchar longer", set("v5", wireVarChar, 84), column("v5"), "84 bytes"},
		{"varchar to text", set("v5", wireBlob, 2), column("v5"), "text or blob"},
		{"char longer", set("c3", wireString, 0xFE00|11), column("c3"), "11 bytes"},
		{"text size", set("tx", wireBlob, 3), column("tx"), "3 length bytes"},
		{"binary longer", set("bi16", wireString, 0xFE00|17), column("bi16"), "17 bytes"},
		{"enum to set", set("e1", wireString, uint16(wireSet)<<8|1), column("e1"), "set"},
		{"enum size", set("e1", wireString, uint16(wireEnum)<<8|2), column("e1"), "enum of 2"},
		{"set size", set("st64", wireString, uint16(wireSet)<<8|4), column("st64"), "set of 4"},
		{"json to blob", func(m *TableMap) {
			set("j", wireBlob, 4)(m)
			if m.ColumnCharset != nil {
				m.ColumnCharset = append(m.ColumnCharset, binaryCollation)
			}
		}, column("j"), "text or blob"},
		{"unknown wire type", set("j", 99, 0), column("j"), "wire type 99"},
		{"compressed", set("tx", wireBlobCompressed, 2), column("tx"), "compressed"},
		{"nullable", func(m *TableMap) { m.NullBitmap[0] ^= 2 }, 2, "nullable"},
	}
	full := []struct {
		name   string
		change func(m *TableMap)
		column int
		says   string
	}{
		{"name", func(m *TableMap) { m.Names[3] = "other" }, 4, "is called other"},
		{"signedness", func(m *TableMap) { m.Signedness[0] ^= 0x80 }, 1, "unsigned"},
		{"element", func(m *TableMap) { m.EnumValues[0] = append([][]byte{[]byte("z")}, m.EnumValues[0][1:]...) },
			column("e1"), "element 1"},
		{"elements", func(m *TableMap) { m.EnumValues[0] = m.EnumValues[0][1:] }, column("e1"), "elements"},
		{"character set", func(m *TableMap) { m.ColumnCharset[0] = 8 }, column("c1"), "character set"},
		{"text to binary", func(m *TableMap) { m.ColumnCharset[0] = 63 }, column("c1"), "binary"},
		{"unknown collation", func(m *TableMap) { m.ColumnCharset[0] = 5000 }, column("c1"), "collation id 5000"},
	}
	run := func(name string, m TableMap, change func(m *TableMap), wantColumn int, says string) {
		t.Run(name, func(t *testing.T) {
			if err := info.Check(m); err != nil {
				t.Fatalf("before: %v", err)
			}
			change(&m)
			err := info.Check(m)
			var bad *MismatchError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v", err)
			}
			if bad.Column != wantColumn || !strings.Contains(bad.Reason, says) {
				t.Errorf("column %d, %q; want column %d and %q", bad.Column, bad.Reason, wantColumn, says)
			}
			if s := err.Error(); !strings.Contains(s, bad.Known) || !strings.Contains(s, bad.Wire) || bad.Known == "" ||
				bad.Wire == "" {
				t.Errorf("%q does not name both shapes", s)
			}
		})
	}
	for _, c := range cases {
		run(c.name, bare(r.Map), c.change, c.column, c.says)
		run("ancient/"+c.name, ancient(r.Map), c.change, c.column, c.says)
	}
	for _, c := range full {
		run(c.name, cloneMap(r.Map), c.change, c.column, c.says)
	}
}

// A column that can't be read does not stand in the way of the others.
func TestCheckPassesOverUnknownTypes(t *testing.T) {
	table, err := FromInformationSchema(Name{"d", "t"}, []ColumnInfo{
		{Name: "id", Position: 1, DataType: "int", ColumnType: "int(11)"},
		{Name: "c", Position: 2, DataType: "text", ColumnType: "text /*M!100301 COMPRESSED*/", Charset: "utf8mb4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := TableMap{MariaDB: true, Types: []byte{wireLong, wireBlobCompressed}, Metas: []uint16{0, 2}}
	if err := table.Check(m); err != nil {
		t.Error(err)
	}
	if _, err := table.Columns[1].Decode("x"); err == nil || !strings.Contains(err.Error(), "COMPRESSED") {
		t.Errorf("got %v", err)
	}
}

// The row's size of ENUM and SET follows from the number of elements.
func TestCheckCountsElements(t *testing.T) {
	for _, c := range []struct {
		typ         Type
		elements    int
		bytes, fits uint16
	}{
		{Enum, 255, 1, 1}, {Enum, 256, 2, 1}, {Enum, 255, 2, 0},
		{Set, 8, 1, 1}, {Set, 9, 2, 1}, {Set, 24, 3, 1}, {Set, 32, 4, 1}, {Set, 33, 8, 1}, {Set, 33, 5, 0},
	} {
		table := &Table{Columns: []Column{{Name: "e", Type: c.typ, Elements: make([]string, c.elements)}}}
		real := uint16(wireEnum)
		if c.typ == Set {
			real = wireSet
		}
		err := table.Check(TableMap{Types: []byte{wireString}, Metas: []uint16{real<<8 | c.bytes}})
		if (err == nil) != (c.fits == 1) {
			t.Errorf("%s of %d elements in %d bytes: %v", c.typ, c.elements, c.bytes, err)
		}
	}
}

func TestB037SwappedColumnsAreFoundByName(t *testing.T) {
	r := recordings(t)["mysql-9.7.json"]
	info, _ := r.tables(t)
	bt, vb := info.Column("tm"), info.Column("bm")
	info.Columns[bt], info.Columns[vb] = info.Columns[vb], info.Columns[bt]
	if err := info.Check(r.Map); err == nil {
		t.Error("a swap of MEDIUMTEXT and MEDIUMBLOB passed although the map has names")
	}
	if err := info.Check(bare(r.Map)); err == nil {
		t.Error("a swap of MEDIUMTEXT and MEDIUMBLOB passed although the map has character sets")
	}
}

func TestFromTableMapWithoutNames(t *testing.T) {
	for name, r := range recordings(t) {
		if _, err := FromTableMap(bare(r.Map)); !errors.Is(err, ErrNoNames) {
			t.Errorf("%s: %v", name, err)
		}
		info, _ := r.tables(t)
		if err := info.Check(bare(r.Map)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := info.Check(ancient(r.Map)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := r.Map.Ambiguous(), r.Map.MariaDB; got != want {
			t.Errorf("%s: ambiguous %t", name, got)
		}
	}
}

// A map that lacks what its columns need is refused, not filled in.
func TestFromTableMapRefusesToGuess(t *testing.T) {
	r := recordings(t)["mysql-9.7.json"]
	cases := map[string]func(m *TableMap){
		"signedness":                  func(m *TableMap) { m.Signedness = nil },
		"signedness of column":        func(m *TableMap) { m.Signedness = m.Signedness[:1] },
		"character set":               func(m *TableMap) { m.ColumnCharset = nil },
		"not in the event":            func(m *TableMap) { m.ColumnCharset = []uint64{255} },
		"collation id 4000":           func(m *TableMap) { m.ColumnCharset[0] = 4000 },
		"element list":                func(m *TableMap) { m.EnumValues = nil },
		"elements of column":          func(m *TableMap) { m.EnumValues = m.EnumValues[:1] },
		"metadata for":                func(m *TableMap) { m.Metas = m.Metas[1:] },
		"names":                       func(m *TableMap) { m.Names = m.Names[1:] },
		"null bitmap":                 func(m *TableMap) { m.NullBitmap = m.NullBitmap[:1] },
		"primary key over column 999": func(m *TableMap) { m.PrimaryKey = []uint64{999} },
		"no columns":                  func(m *TableMap) { m.Types = nil },
	}
	for says, change := range cases {
		m := cloneMap(r.Map)
		change(&m)
		if _, err := FromTableMap(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error about %q, got %v", says, err)
		}
	}
	m := cloneMap(r.Map)
	m.Types[0] = 99
	m.Signedness = nil
	m.Types, m.Metas, m.Names, m.PrimaryKey = m.Types[:1], m.Metas[:1], m.Names[:1], nil
	if table, err := FromTableMap(m); err != nil || table.Columns[0].Type != Unknown {
		t.Errorf("an unknown wire type: %v", err)
	}
}

func TestMergeKeepsWhatDiffers(t *testing.T) {
	r := recordings(t)["mariadb-11.8.json"]
	info, wire := r.tables(t)
	uuid := wire.Column("u")
	if wire.Columns[uuid].Type != Binary {
		t.Fatalf("the binlog alone says %s", wire.Columns[uuid].Type)
	}
	merged, agreed := wire.Merge(info)
	if !agreed || merged.Columns[uuid].Type != UUID || merged.Columns[uuid].DefaultExpr != "uuid()" {
		t.Errorf("agreed %t, %+v", agreed, merged.Columns[uuid])
	}
	if c := merged.Columns[merged.Column("s2")]; c.Default == nil || *c.Default != "65535" {
		t.Errorf("%+v", c)
	}
	// The table has changed since: what no longer agrees stays as the binlog has it.
	changed := &Table{Name: info.Name, Columns: slices.Clone(info.Columns[1:])}
	i := changed.Column("v5")
	changed.Columns[i].Length = 7
	merged, agreed = wire.Merge(changed)
	if c := merged.Columns[wire.Column("v5")]; agreed || c.Length != 20 || c.DefaultKnown || c.ColumnType != "" {
		t.Errorf("agreed %t, %+v", agreed, c)
	}
	if c := merged.Columns[wire.Column("s2")]; !c.DefaultKnown {
		t.Errorf("a column that still agrees: %+v", c)
	}
	moved := &Table{Name: info.Name, Columns: slices.Clone(info.Columns)}
	slices.Reverse(moved.Columns)
	if merged, agreed = wire.Merge(moved); agreed || !merged.Columns[0].DefaultKnown {
		t.Errorf("the same columns in another order: agreed %t, %+v", agreed, merged.Columns[0])
	}
	if wire.Columns[uuid].Type != Binary || wire.Columns[0].DefaultKnown {
		t.Error("Merge changed its receiver")
	}
}

// No table map, however broken, makes anything panic.
func TestCheckNeverPanics(t *testing.T) {
	all := recordings(t)
	keys := slices.Sorted(maps.Keys(all))
	rapid.Check(t, func(t *rapid.T) {
		r := all[rapid.SampledFrom(keys).Draw(t, "recording")]
		m := cloneMap(r.Map)
		n := rapid.IntRange(0, len(m.Types)).Draw(t, "columns")
		m.Types, m.Metas = m.Types[:n], m.Metas[:rapid.IntRange(0, n).Draw(t, "metas")]
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			if n == 0 || len(m.Metas) == 0 {
				break
			}
			m.Types[rapid.IntRange(0, n-1).Draw(t, "at")] = rapid.Byte().Draw(t, "type")
			m.Metas[rapid.IntRange(0, len(m.Metas)-1).Draw(t, "at")] = rapid.Uint16().Draw(t, "meta")
		}
		cut := func(b []byte) []byte { return b[:rapid.IntRange(0, len(b)).Draw(t, "cut")] }
		m.Signedness, m.NullBitmap = cut(m.Signedness), cut(m.NullBitmap)
		m.DefaultCharset = rapid.SliceOfN(rapid.Uint64Range(0, 400), 0, 9).Draw(t, "charsets")
		m.ColumnCharset = rapid.SliceOfN(rapid.Uint64Range(0, 400), 0, 9).Draw(t, "charsets")
		m.EnumValues = m.EnumValues[:rapid.IntRange(0, len(m.EnumValues)).Draw(t, "enums")]
		m.PrimaryKey = rapid.SliceOfN(rapid.Uint64Range(0, 80), 0, 3).Draw(t, "key")
		if rapid.Bool().Draw(t, "named") {
			m.Names = m.Names[:n]
		}
		table, err := FromTableMap(m)
		if err == nil {
			// A shape read from a map fits that map, unless the map is nonsense (a
			// length that is no multiple of the character set's).
			var bad *MismatchError
			if err := table.Check(m); err != nil && !errors.As(err, &bad) {
				t.Errorf("%v", err)
			}
		}
		m.Ambiguous()
		info, _ := FromInformationSchema(r.Map.Name, r.Columns)
		_ = info.Check(m)
	})
}
