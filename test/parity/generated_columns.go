package parity

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// column draws a type with values, and in most cases a default in one of the many ways
// in which SQL writes it.
func (d draw) column() column {
	kinds := []func() column{d.integer, d.integer, d.decimal, d.floating, d.bits, d.text, d.text, d.binary, d.binary,
		d.varbinary, d.varbinary, d.choice, d.date, d.time, d.datetime, d.timestamp, d.other}
	c := kinds[d.IntN(len(kinds))]()
	if d.chance(25) {
		c.def = ""
	}
	return c
}

func (d draw) integer() column {
	typ := d.pick("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "TINYINT(1)", "INTEGER", "INT2", "INT8",
		"MIDDLEINT", "BOOLEAN", "YEAR")
	if typ == "YEAR" {
		return column{typ, d.pick("2024", "'1999'", "70", "0"), []string{"2024", "1901", "0", "'5'"}}
	}
	c := column{typ, d.pick("5", "-7", "'12'", "0x10", "b'101'", "TRUE", "1.4", "'1e1'", "+3", "0", "-0", "(3 + 4)",
		"(-1)"), []string{"0", "100", "1"}}
	if typ != "BOOLEAN" && typ != "TINYINT(1)" && d.chance(40) {
		c.typ += d.pick(" UNSIGNED", " ZEROFILL", " UNSIGNED ZEROFILL")
		if strings.HasPrefix(c.def, "-") || c.def == "(-1)" {
			c.def = "9"
		}
	} else {
		c.values = append(c.values, "-100")
	}
	return c
}

func (d draw) decimal() column {
	scale := d.IntN(8)
	precision := scale + 1 + d.IntN(20)
	typ := fmt.Sprintf("%s(%d,%d)", d.pick("DECIMAL", "NUMERIC", "DEC", "FIXED"), precision, scale)
	if d.chance(15) {
		typ = "DECIMAL"
	}
	c := column{typ, d.pick("1", "'2.0'", "-0", "0.5", "-1", "1e0", "'-3'", "+4", "0x05"),
		[]string{"0", "1", "-1", "0.5", "-0.05", "9.99"}}
	if d.chance(20) {
		c.typ += d.pick(" UNSIGNED", " ZEROFILL")
		c.def, c.values = d.pick("1", "'2.50'", "0"), []string{"0", "1.5", "3"}
	}
	return c
}

func (d draw) floating() column {
	return column{d.pick("FLOAT", "DOUBLE", "REAL", "FLOAT(7,3)", "DOUBLE(10,2)", "FLOAT(24)", "FLOAT(53)",
		"DOUBLE PRECISION", "FLOAT UNSIGNED", "FLOAT4", "FLOAT8"),
		d.pick("1.5", "0", "'2.25'", "1e3", "'1e-5'", "123456.7", "0.1", "100000", "12"),
		[]string{"0", "1.5", "0.1", "1234.5678", "3", "100"}}
}

func (d draw) bits() column {
	n := 1 + d.IntN(64)
	if d.chance(30) {
		n = 1
	}
	return column{fmt.Sprintf("BIT(%d)", n), d.pick("b'1'", "1", "0", "b'0'", "0x1", "x'01'", "TRUE"),
		[]string{"0", "1", "b'1'"}}
}

// literals are defaults of texts and bytes that SHOW CREATE TABLE writes in its own way.
var literals = []string{"'a'", "''", "' '", "'ab '", "'it''s'", `'b\\s'`, `'n\nl'`, `'"'`, "'a,b'", "'NULL'", "'()'",
	"'0'", "5", "1.5", "'%_'", `'t\tb'`, `'#'`, "'--'", "'`'", "x'41'", "'a;b'", "'/*'"}

func (d draw) text() column {
	typ := d.pick("VARCHAR(20)", "CHAR(8)", "VARCHAR(20) CHARACTER SET latin1", "CHAR(8) CHARACTER SET utf8mb3",
		"NVARCHAR(10)", "NCHAR(9)", "CHAR(10) CHARACTER SET ucs2", "VARCHAR(9) COLLATE utf8mb4_bin", "TEXT", "TINYTEXT",
		"LONGTEXT", "TEXT(50)")
	c := column{typ, d.pick(append(literals, "'é'", "'ü ñ'", "'漢'")...),
		[]string{"'a'", "''", "'a b  '", "'O''x'", "'1'", `'q"\\'`}}
	if strings.Contains(typ, "latin1") && c.def == "'漢'" {
		c.def = "'é'"
	}
	if strings.Contains(typ, "TEXT") {
		c.def = d.pick("", "('x')", "")
	}
	return c
}

// bytesLiteral is bytes as SQL writes them.
func (d draw) bytesLiteral(most int) string {
	switch d.IntN(4) {
	case 0:
		for {
			if l := d.pick(literals...); len(l) <= most {
				return l
			}
		}
	case 1:
		return d.pick("'a'", "'b'", "''", `'\0'`, `'a\0'`, `'\0a'`, "'é'", "0x41", "1")
	}
	b := make([]byte, 1+d.IntN(min(most, 6)))
	for i := range b {
		b[i] = []byte{0, 0, 0xff, 0x80, 'a', 'b', ' ', '\\', '\'', '"', 0xc3, 0xa9, '\n', byte(d.IntN(256))}[d.IntN(14)]
	}
	return "x'" + hex.EncodeToString(b) + "'"
}

func (d draw) binary() column {
	n := 2 + d.IntN(10)
	if d.chance(10) {
		return column{"BINARY", d.pick("'a'", "x'00'", "x'ff'", "0", "''"), []string{"'a'", "x'00'"}}
	}
	return column{fmt.Sprintf("BINARY(%d)", n), d.bytesLiteral(n), []string{"'a'", "x'00'", "x'ff00'", "''"}}
}

func (d draw) varbinary() column {
	if d.chance(15) {
		return column{d.pick("BLOB", "TINYBLOB", "LONGBLOB"), d.pick("", "('x')"), []string{"'a'", "x'00'", "x'ff00'", "''"}}
	}
	n := 2 + d.IntN(20)
	return column{fmt.Sprintf("VARBINARY(%d)", n), d.bytesLiteral(n), []string{"'a'", "x'00'", "x'ff00'", "''"}}
}

func (d draw) choice() column {
	if d.chance(50) {
		return column{d.pick("ENUM('a','b','c d')", `ENUM('a','it''s','b\\s')`, "ENUM('a','é','漢')",
			"ENUM('a','b') CHARACTER SET latin1", "ENUM('a','b,c','(')"), d.pick("'a'", "'a'", ""), []string{"'a'", "1", "2"}}
	}
	return column{d.pick("SET('a','b','c d')", "SET('a','é','漢')", `SET('a','it''s')`, "SET('a','b') CHARACTER SET ucs2"),
		d.pick("'a'", "''", ""), []string{"'a'", "3", "''", "0"}}
}

func (d draw) fsp() (text string, digits int) {
	if digits = d.IntN(7); digits == 0 {
		return "", 0
	}
	return fmt.Sprintf("(%d)", digits), digits
}

func (d draw) date() column {
	return column{"DATE", d.pick("'2024-02-29'", "20240101", "'70-1-2'", "'1969-12-31'", "'0001-01-01'", "'9999-12-31'",
		"'2024.3.4'", "(CURRENT_DATE)"), []string{"'2024-02-29'", "'1969-12-31'", "'0099-01-01'", "'9999-12-31'"}}
}

func (d draw) time() column {
	fsp, _ := d.fsp()
	return column{"TIME" + fsp, d.pick("'12:34:56'", "'1:2'", "'-01:00:00'", "123456", "'00:00:00.5'", "'23:59:59.999999'",
		"0", "'12:34:56.123456'"), []string{"'12:34:56.654321'", "'00:00:00'", "'-01:02:03.5'", "'23:00:00'"}}
}

func (d draw) datetime() column {
	fsp, _ := d.fsp()
	return column{"DATETIME" + fsp, d.pick("'2024-02-29 12:34:56'", "'2024-02-29'", "20240229123456",
		"'2024-02-29 12:34:56.789123'", "CURRENT_TIMESTAMP"+fsp, "CURRENT_TIMESTAMP"+fsp+" ON UPDATE CURRENT_TIMESTAMP"+fsp,
		"'1969-12-31 23:59:59.9'", "'69-1-1 1:1:1'"),
		[]string{"'2024-02-29 12:34:56.789123'", "'1969-12-31 23:59:59.999999'", "'0050-01-01 00:00:00'"}}
}

func (d draw) timestamp() column {
	fsp, _ := d.fsp()
	return column{"TIMESTAMP" + fsp, d.pick("'2024-02-29 12:34:56'", "'2024-02-29'", "20240229123456",
		"'2024-02-29 12:34:56.789123'", "CURRENT_TIMESTAMP"+fsp, "'1970-01-01 00:00:01'",
		"NOW"+strings.ReplaceAll(fsp+"()", ")()", ")")),
		[]string{"'2024-02-29 12:34:56.789123'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"}}
}

func (d draw) other() column {
	switch d.IntN(3) {
	case 0:
		return column{"JSON", d.pick("", "('{}')", "(JSON_OBJECT())"), []string{`'{"a": [1, "x"]}'`, "'null'", "'1.0'"}}
	case 1:
		return column{d.pick("POINT", "GEOMETRY"), "", []string{"ST_GeomFromText('POINT(1 2)')",
			"ST_GeomFromText('POINT(0 -1.5)', 4326)"}}
	}
	return column{"VECTOR(2)", "", []string{"TO_VECTOR('[1, 2.5]')"}}
}

// charset is a character set with the bytes that its texts are drawn from.
type charset struct {
	name string
	// one says that each byte is a character; lead and trail are the bytes of a
	// character of two.
	lead, recent [2]byte
	one          bool
}

func charsets() []charset {
	one := func(name string) charset { return charset{name: name, one: true} }
	return []charset{
		one("latin1"), one("latin2"), one("latin5"), one("latin7"), one("cp1250"), one("cp1251"), one("cp1256"),
		one("cp1257"), one("cp850"), one("cp852"), one("cp866"), one("koi8r"),
		one("greek"), one("hebrew"), one("tis620"), one("dec8"), one("macroman"), one("macce"),
		{"gbk", [2]byte{0x81, 0xfe}, [2]byte{0xa1, 0xfe}, false}, {"gb2312", [2]byte{0xa1, 0xf7}, [2]byte{0xa1, 0xfe}, false},
		{"big5", [2]byte{0xa1, 0xf9}, [2]byte{0xa1, 0xfe}, false},
		{"sjis", [2]byte{0x81, 0x9f}, [2]byte{0x80, 0xfc}, false}, {"cp932", [2]byte{0x81, 0x9f}, [2]byte{0x80, 0xfc}, false},
		{"ujis", [2]byte{0xa1, 0xfe}, [2]byte{0xa1, 0xfe}, false},
		{"eucjpms", [2]byte{0xa1, 0xfe}, [2]byte{0xa1, 0xfe}, false}, {"euckr", [2]byte{0xa1, 0xfe}, [2]byte{0xa1, 0xfe},
			false}, {"gb18030", [2]byte{0x81, 0xfe}, [2]byte{0x80, 0xfe}, false},
		{"ucs2", [2]byte{0x00, 0xff}, [2]byte{0x00, 0xff}, false}, {"utf16", [2]byte{0x01, 0xd7}, [2]byte{0x00, 0xff}, false},
		{"utf16le", [2]byte{0x00, 0xff}, [2]byte{0x01, 0xd7}, false},
	}
}

// text draws n characters, as hexadecimal digits.
func (s charset) text(d draw, n int) string {
	var b []byte
	between := func(r [2]byte) byte { return r[0] + byte(d.IntN(int(r[1]-r[0])+1)) }
	for range n {
		switch {
		case s.one:
			b = append(b, byte(0x20+d.IntN(0xe0)))
		case d.chance(20) && !strings.HasPrefix(s.name, "u") || d.chance(20) && s.name == "ujis":
			b = append(b, 'a'+byte(d.IntN(26)))
		default:
			b = append(b, between(s.lead), between(s.recent))
		}
	}
	return hex.EncodeToString(b)
}
