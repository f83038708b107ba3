package schema

import "testing"

func TestSetShownDefaults(t *testing.T) {
	create := "CREATE TABLE `t` (\n" +
		"  `id` int NOT NULL,\n" +
		"  `a`` DEFAULT 'no'` varbinary(9) NOT NULL DEFAULT '\\0a''\\\\' COMMENT 'x DEFAULT ''y''',\n" +
		"  `b` binary(3) DEFAULT 0xFF00C3,\n" +
		"  `c` varbinary(9) DEFAULT _binary 'x\\0',\n" +
		"  `d` varbinary(9) DEFAULT NULL COMMENT ' DEFAULT ''z''',\n" +
		"  PRIMARY KEY (`id`)\n) ENGINE=InnoDB"
	text := func(s string) *string { return &s }
	for version, want := range map[string][3]string{
		"9.7.0": {"0x0061275c", "0xff00c3", "0x7800"}, "11.8.2-MariaDB": {"x'0061275c'", "x'ff00c3'", "x'7800'"},
	} {
		cols := []ColumnInfo{
			{Name: "id", DataType: "int", Default: text("5")}, {Name: "a` DEFAULT 'no'", DataType: "varbinary",
				Default: text("")},
			{Name: "b", DataType: "binary", Default: text("")}, {Name: "c", DataType: "varbinary", Default: text("x")},
			{Name: "d", DataType: "varbinary"},
		}
		for i := range cols {
			cols[i].ServerVersion = version
		}
		if !NeedsShownDefaults(cols) || NeedsShownDefaults(cols[:1]) || NeedsShownDefaults(cols[4:]) {
			t.Error("asks for the wrong ones")
		}
		SetShownDefaults(cols, create)
		for i, w := range want {
			if got := *cols[i+1].Default; got != w {
				t.Errorf("%s of %s: %q, want %q", cols[i+1].Name, version, got, w)
			}
		}
		if *cols[0].Default != "5" || cols[4].Default != nil {
			t.Error("others are changed")
		}
	}
}
