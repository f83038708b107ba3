package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// Foreign tables of every column type and of many columns are passed over.

func TestForeignTablesMySQL(t *testing.T) {
	foreignTables(t, play{server: mysqlGTID(t)}, append(commonTypes,
		column{"VECTOR(3)", "STRING_TO_VECTOR('[1,2,3]')"},
		column{"BIT(17)", "b'101'"}, column{"JSON", `'{"a": [1, 2.5, null, "x"]}'`},
		column{"GEOMETRY", "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')"}, column{"POINT", "ST_GeomFromText('POINT(1 2)')"},
		column{"GEOMETRYCOLLECTION", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))')"}))
}

func TestForeignTablesMariaDB(t *testing.T) {
	foreignTables(t, play{server: mariadb(t)}, append(commonTypes,
		column{"UUID", "UUID()"}, column{"INET4", "'192.0.2.1'"}, column{"INET6", "'2001:db8::1'"},
		column{"BIT(17)", "b'101'"}, column{"JSON", `'{"a": 1}'`}, column{"LONGTEXT COMPRESSED", "REPEAT('x', 5000)"},
		column{"GEOMETRY", "ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')"},
		column{"POINT", "ST_GeomFromText('POINT(1 2)')"}))
}

type column struct{ kind, value string }

var commonTypes = []column{
	{"TINYINT UNSIGNED", "255"}, {"SMALLINT", "-32768"}, {"MEDIUMINT", "-8388608"}, {"INT UNSIGNED ZEROFILL", "7"},
	{"BIGINT UNSIGNED", "18446744073709551615"},
	{"BOOLEAN", "TRUE"}, {"FLOAT", "1.5"}, {"DOUBLE", "-2.5e300"}, {"DECIMAL(65,30)", "12345678901234567890.123456789"},
	{"DATE", "'2024-02-29'"}, {"TIME(6)", "'-838:59:58.999999'"}, {"DATETIME(6)", "'9999-12-31 23:59:59.999999'"},
	{"TIMESTAMP(3) NULL", "NOW(3)"}, {"YEAR", "2155"},
	{"CHAR(255)", "REPEAT('é', 255)"}, {"VARCHAR(1000)", "REPEAT('漢', 1000)"}, {"BINARY(16)", "X'00FF00'"},
	{"VARBINARY(300)", "REPEAT(X'FF', 300)"},
	{"TINYTEXT", "'t'"}, {"TEXT CHARACTER SET latin1", "'t'"}, {"MEDIUMTEXT", "REPEAT('m', 100000)"},
	{"LONGTEXT", "REPEAT('l', 1000000)"},
	{"TINYBLOB", "X'00'"}, {"BLOB", "X'00'"}, {"MEDIUMBLOB", "X'00'"}, {"LONGBLOB", "REPEAT(X'00', 1000000)"},
	{"ENUM('a','b')", "'b'"}, {"SET('a','b','c')", "'a,c'"}, {"VARCHAR(10) CHARACTER SET utf32", "'u'"},
	{"INT", "NULL"}, {"LONGTEXT", "NULL"},
}

func foreignTables(t *testing.T, p play, types []column) {
	t.Helper()
	s := newStage(t, p)
	var definitions, values, wide []string
	for i, c := range types {
		definitions = append(definitions, fmt.Sprintf("c%d %s", i, c.kind))
		values = append(values, c.value)
	}
	for i := range 1000 {
		wide = append(wide, fmt.Sprintf("c%d TINYINT", i))
	}
	s.sql("CREATE TABLE every_type ("+strings.Join(definitions, ",")+")",
		"CREATE TABLE wide ("+strings.Join(wide, ",")+")")
	s.start()
	rows := "(" + strings.Join(values, ",") + ")"
	load := workload.Load{Transactions: 20, Writers: 2, Batch: 2, MaxRows: 4, Size: 100}
	for range 3 {
		if err := s.shop.Write(t.Context(), load); err != nil {
			t.Fatal(err)
		}
		s.sql(
			"INSERT INTO every_type VALUES "+rows+","+rows, "UPDATE every_type SET c0 = 3", "DELETE FROM every_type LIMIT 1",
			"INSERT INTO wide (c0, c999) VALUES (1, 2), (3, 4)", "UPDATE wide SET c500 = 7", "DELETE FROM wide LIMIT 1")
	}
	if err := s.shop.Write(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	s.finish(history.ExactlyOnce)
}
