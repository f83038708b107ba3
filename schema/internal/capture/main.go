//go:build ignore

// Command capture records what a real server says about a table with columns of
// every kind: information_schema's rows, the binlog's table map, the row values
// as go-mysql decodes them, and the same values as SELECT prints them. The
// package's tests read the recordings, so they need no server.
//
//	go run internal/capture/main.go -addr 127.0.0.1:3306 -out testdata/mysql-9.7.json
//
// Run it from the schema folder, as root without a password, on a server with
// binlog_row_metadata=FULL. It creates and drops the database schema_capture.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Recording is one captured table.
type Recording struct {
	Server  string
	Create  string
	Columns []schema.ColumnInfo
	Map     schema.TableMap
	// Rows hold each value as [Go type, text]; bytes and strings in hexadecimal.
	Rows [][][2]string
	// Want holds what SELECT prints: in hexadecimal for binary types.
	Want [][]string
}

const common = `
t1 tinyint NOT NULL DEFAULT -5, t2 tinyint unsigned, s1 smallint, s2 smallint unsigned DEFAULT 65535,
m1 mediumint, m2 mediumint unsigned, i1 int, i2 int unsigned zerofill, b1 bigint, b2 bigint unsigned NOT NULL,
f1 float, f2 float(7,3), d1 double, d2 double(10,2), n1 decimal(65,30), n2 decimal(10,0) DEFAULT 7, n3 decimal(4,4),
bit1 bit(1) DEFAULT b'1', bit9 bit(9), bit64 bit(64), y year,
da date, ti0 time, ti3 time(3), ti6 time(6), dt0 datetime, dt1 datetime(1) DEFAULT '2020-01-02 03:04:05.6', dt6 datetime(6),
ts0 timestamp NULL, ts3 timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), ts6 timestamp(6) NULL DEFAULT NULL,
c1 char(36) NOT NULL DEFAULT 'it''s \\ "x"', c2 char(255) CHARACTER SET utf8mb4, c3 char(10) CHARACTER SET latin1, v0 varchar(0),
v1 varchar(255) DEFAULT 'NULL', v2 varchar(300) CHARACTER SET utf8mb3, v3 varchar(20) CHARACTER SET sjis, v4 varchar(20) CHARACTER SET ucs2,
v5 varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
tt tinytext, tx text CHARACTER SET cp1251, tm mediumtext, tl longtext,
bi1 binary(1), bi16 binary(16), bi255 binary(255), vb varbinary(300), bt tinyblob, bb blob, bm mediumblob, bl longblob,
e1 enum('a','b''c','d\\e','f,g','','é','(x)') NOT NULL, e2 enum('я','ж') CHARACTER SET cp1251 DEFAULT 'ж',
e3 enum('ж','漢') CHARACTER SET ucs2, e4 enum('é','b') CHARACTER SET binary,
st set('x','y','ü') CHARACTER SET latin1, st64 set(%s),
g geometry, p point, j json,
vg int AS (t1 + 1) VIRTUAL, sg int AS (t1 + 2) STORED`

func main() {
	addr := flag.String("addr", "127.0.0.1:3306", "server")
	out := flag.String("out", "", "file to write")
	flag.Parse()
	conn, err := client.Connect(*addr, "root", "", "")
	check(err)
	exec := func(q string) *mysql.Result {
		r, err := conn.Execute(q)
		if err != nil {
			log.Fatalf("%s: %v", q, err)
		}
		return r
	}
	exec("SET NAMES utf8mb4")
	exec("SET time_zone = '+00:00', sql_mode = ''")
	exec("DROP DATABASE IF EXISTS schema_capture")
	exec("CREATE DATABASE schema_capture CHARACTER SET utf8mb4")
	exec("USE schema_capture")
	v := exec("SELECT VERSION()")
	version, _ := v.GetString(0, 0)
	rec := Recording{Server: version}

	mariadb := strings.Contains(version, "MariaDB")
	vectors := !strings.HasPrefix(version, "10.")
	var members []string
	for i := range 64 {
		members = append(members, fmt.Sprintf("'m%d'", i))
	}
	cols := fmt.Sprintf(common, strings.Join(members, ","))
	if mariadb {
		cols += ", u uuid NOT NULL DEFAULT uuid(), i4 inet4, i6 inet6"
		if vectors {
			cols += ", vec vector(3)"
		}
	} else {
		cols += ", vec vector(3), vdef varchar(40) DEFAULT (concat('a','b')), inv int INVISIBLE DEFAULT 3"
	}
	cols += ", PRIMARY KEY (b2, t1)"
	if !mariadb {
		cols += ", KEY fx ((i1 + 1))"
	}
	rec.Create = "CREATE TABLE everything (" + cols + ") DEFAULT CHARSET utf8mb4"
	exec(rec.Create)
	rec.Columns = readColumns(conn)

	pos := startOfBinlog(conn)
	for _, row := range rows(mariadb, vectors) {
		var names, values []string
		for _, kv := range row {
			names, values = append(names, kv[0]), append(values, kv[1])
		}
		exec("INSERT INTO everything (" + strings.Join(names, ",") + ") VALUES (" + strings.Join(values, ",") + ")")
	}
	rec.Want = selectAll(conn, rec.Columns)
	readBinlog(*addr, mariadb, pos, &rec)
	exec("DROP DATABASE schema_capture")

	b, err := json.MarshalIndent(rec, "", " ")
	check(err)
	check(os.WriteFile(*out, append(b, '\n'), 0o644))
}

func readColumns(conn *client.Conn) []schema.ColumnInfo {
	r, err := conn.Execute(schema.ColumnsQuery, "schema_capture", "everything")
	check(err)
	var out []schema.ColumnInfo
	for i := range r.Values {
		str := func(c int) string { s, err := r.GetString(i, c); check(err); return s }
		num := func(c int) int { n, err := r.GetInt(i, c); check(err); return int(n) }
		length, err := r.GetUint(i, 6)
		check(err)
		c := schema.ColumnInfo{
			Name: str(0), Position: num(1), Nullable: num(3) == 1, DataType: str(4), ColumnType: str(5),
			CharLength: length, Precision: num(7), Scale: num(8), FSP: num(9), Charset: str(10), Extra: str(11),
			Primary: num(12) == 1, KeyPosition: num(13), ServerVersion: str(14),
		}
		if null, _ := r.IsNull(i, 2); !null {
			d := str(2)
			c.Default = &d
		}
		out = append(out, c)
	}
	return out
}

func startOfBinlog(conn *client.Conn) mysql.Position {
	_, err := conn.Execute("FLUSH BINARY LOGS")
	check(err)
	r, err := conn.Execute("SHOW BINARY LOGS")
	check(err)
	name, _ := r.GetString(r.RowNumber()-1, 0)
	return mysql.Position{Name: name, Pos: 4}
}

func rows(mariadb, vectors bool) [][][2]string {
	highest := [][2]string{
		{"t1", "127"}, {"t2", "255"}, {"s1", "32767"}, {"s2", "65535"}, {"m1", "8388607"}, {"m2", "16777215"},
		{"i1", "2147483647"}, {"i2", "4294967295"}, {"b1", "9223372036854775807"}, {"b2", "18446744073709551615"},
		{"f1", "1.5"}, {"f2", "1234.567"}, {"d1", "1e300"}, {"d2", "12345678.91"},
		{"n1", "12345678901234567890123456789012345.123456789012345678901234567890"}, {"n2", "-9999999999"}, {"n3", "0.0001"},
		{"bit1", "1"}, {"bit9", "b'100000001'"}, {"bit64", "18446744073709551615"}, {"y", "2155"},
		{"da", "'9999-12-31'"}, {"ti0", "'838:59:59'"}, {"ti3", "'-838:59:59.000'"}, {"ti6", "'-00:00:00.000001'"},
		{"dt0", "'9999-12-31 23:59:59'"}, {"dt1", "'2020-01-01 00:00:00.9'"}, {"dt6", "'1000-01-01 00:00:00.000001'"},
		{"ts0", "'2038-01-19 03:14:07'"}, {"ts3", "'1970-01-01 00:00:01.999'"}, {"ts6", "'2024-02-29 12:00:00.100000'"},
		{"c1", "'123e4567-e89b-12d3-a456-426614174000'"}, {"c2", "'Grüße 😀  '"}, {"c3", "'José €'"}, {"v0", "''"},
		{"v1", "'x  '"}, {"v2", "'漢字'"}, {"v3", "'漢字ｱ'"}, {"v4", "'漢字a'"}, {"v5", "'😀'"},
		{"tt", "'tiny'"}, {"tx", "'Привет'"}, {"tm", "repeat('ä', 300)"}, {"tl", "''"},
		{"bi1", "x'00'"}, {"bi16", "x'00112233445566778899aabbccdd0000'"}, {"bi255", "x'ff'"}, {"vb", "x'ff00'"},
		{"bt", "x'00'"}, {"bb", "''"}, {"bm", "x'fffe'"}, {"bl", "x'e9'"},
		{"e1", "'b''c'"}, {"e2", "'я'"}, {"e3", "'漢'"}, {"e4", "'é'"}, {"st", "'x,ü'"}, {"st64", "'m0,m63'"},
		{"g", "ST_GeomFromText('POINT(1 2)')"}, {"p", "ST_GeomFromText('POINT(3 4)')"}, {"j", `'{"a":1.0}'`},
	}
	zero := [][2]string{
		{"t1", "-128"}, {"t2", "128"}, {"s1", "-32768"}, {"s2", "32768"}, {"m1", "-8388608"}, {"m2", "8388608"},
		{"i1", "-2147483648"}, {"i2", "2147483648"}, {"b1", "-9223372036854775808"}, {"b2", "9223372036854775808"},
		{"f1", "-0.0"}, {"f2", "0"}, {"d1", "-1e-300"}, {"d2", "0"}, {"n1", "-0.000000000000000000000000000001"}, {"n2", "0"},
		{"n3", "-0.9999"},
		{"bit1", "0"}, {"bit9", "0"}, {"bit64", "9223372036854775808"}, {"y", "0"},
		{"da", "'0000-00-00'"}, {"ti0", "'-00:00:01'"}, {"ti3", "'00:00:00'"}, {"ti6", "'00:00:00.000001'"},
		{"dt0", "'0000-00-00 00:00:00'"}, {"dt1", "'2020-00-01 00:00:00'"}, {"dt6", "'0000-00-00 00:00:00'"},
		{"ts0", "'0000-00-00 00:00:00'"}, {"ts3", "'0000-00-00 00:00:00'"}, {"ts6", "'2024-02-29 12:00:00'"},
		{"c1", "''"}, {"bi16", "x'00'"}, {"bi255", "''"}, {"vb", "''"}, {"e1", "'nonsense'"}, {"e2", "2"}, {"st", "''"},
		{"st64", "18446744073709551615"},
	}
	more := [][2]string{{"b2", "1"}, {"t1", "1"}, {"e1", "'f,g'"}, {"ti3", "'12:34:56.7'"}, {"ti0", "'12:34:56'"},
		{"ti6", "'-01:00:00.5'"},
		{"bit9", "255"}, {"bi16", "x'" + strings.Repeat("20", 16) + "'"}}
	if mariadb {
		highest = append(highest, [2]string{"u", "'123e4567-e89b-12d3-a456-426614174000'"}, [2]string{"i4", "'192.168.0.1'"},
			[2]string{"i6", "'2001:db8::ff00:42:8329'"})
		if vectors {
			highest = append(highest, [2]string{"vec", "VEC_FromText('[1,2,3]')"})
		}
		zero = append(zero, [2]string{"u", "'00000000-0000-0000-0000-000000000000'"}, [2]string{"i4", "'0.0.0.0'"},
			[2]string{"i6", "'::'"})
		more = append(more, [2]string{"u", "'ffffffff-0000-4000-8000-000000000000'"}, [2]string{"i4", "'255.0.0.0'"},
			[2]string{"i6", "'::ffff:10.0.0.1'"})
	} else {
		highest = append(highest, [2]string{"vec", "TO_VECTOR('[1,2,3]')"}, [2]string{"inv", "9"})
		zero = append(zero, [2]string{"vdef", "NULL"})
	}
	return [][][2]string{highest, zero, more}
}

func selectAll(conn *client.Conn, cols []schema.ColumnInfo) [][]string {
	var list []string
	for _, c := range cols {
		switch c.DataType {
		case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "vector", "json":
			list = append(list, "HEX("+c.Name+")")
		case "bit":
			list = append(list, "CAST("+c.Name+"+0 AS CHAR)")
		default:
			list = append(list, "CONVERT("+c.Name+" USING utf8mb4)")
		}
	}
	r, err := conn.Execute("SELECT " + strings.Join(list, ",") + " FROM everything ORDER BY b2 = 1, b2 DESC")
	check(err)
	var out [][]string
	for i := range r.Values {
		var row []string
		for j := range cols {
			s := "NULL"
			if null, _ := r.IsNull(i, j); !null {
				s, _ = r.GetString(i, j)
			}
			row = append(row, s)
		}
		out = append(out, row)
	}
	return out
}

func readBinlog(addr string, mariadb bool, pos mysql.Position, rec *Recording) {
	host, port, err := net.SplitHostPort(addr)
	check(err)
	n, err := strconv.Atoi(port)
	check(err)
	cfg := replication.BinlogSyncerConfig{ServerID: 4711, Flavor: "mysql", Host: host, Port: uint16(n), User: "root",
		TimestampStringLocation: time.UTC, Logger: slog.New(slog.DiscardHandler)}
	if mariadb {
		cfg.Flavor = "mariadb"
	}
	cfg.RowsEventDecodeFunc = func(e *replication.RowsEvent, data []byte) error {
		pos, err := e.DecodeHeader(data)
		if err != nil {
			return err
		}
		types := e.Table.ColumnType
		patched := append([]byte(nil), types...)
		for i, t := range patched { // JSON documents as they are
			if t == mysql.MYSQL_TYPE_JSON {
				patched[i] = mysql.MYSQL_TYPE_BLOB
			}
		}
		e.Table.ColumnType = patched
		err = e.DecodeData(pos, data)
		e.Table.ColumnType = types
		return err
	}
	s := replication.NewBinlogSyncer(cfg)
	defer s.Close()
	stream, err := s.StartSync(pos)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for len(rec.Rows) < len(rec.Want) {
		ev, err := stream.GetEvent(ctx)
		check(err)
		switch e := ev.Event.(type) {
		case *replication.TableMapEvent:
			rec.Map = tableMap(e, mariadb)
		case *replication.RowsEvent:
			for _, row := range e.Rows {
				var out [][2]string
				for _, v := range row {
					out = append(out, typed(v))
				}
				rec.Rows = append(rec.Rows, out)
			}
		}
	}
}

func tableMap(e *replication.TableMapEvent, mariadb bool) schema.TableMap {
	return schema.TableMap{
		Name: schema.Name{Database: string(e.Schema), Table: string(e.Table)}, MariaDB: mariadb,
		Types: append([]byte(nil), e.ColumnType...), Metas: e.ColumnMeta, NullBitmap: e.NullBitmap,
		Names: e.ColumnNameString(), Signedness: e.SignednessBitmap,
		DefaultCharset: e.DefaultCharset, ColumnCharset: e.ColumnCharset,
		EnumSetDefaultCharset: e.EnumSetDefaultCharset, EnumSetColumnCharset: e.EnumSetColumnCharset,
		EnumValues: e.EnumStrValue, SetValues: e.SetStrValue, PrimaryKey: e.PrimaryKey,
	}
}

func typed(v any) [2]string {
	switch v := v.(type) {
	case nil:
		return [2]string{"nil", ""}
	case string:
		return [2]string{"string", fmt.Sprintf("%x", v)}
	case []byte:
		return [2]string{"[]byte", fmt.Sprintf("%x", v)}
	}
	return [2]string{fmt.Sprintf("%T", v), fmt.Sprint(v)}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
