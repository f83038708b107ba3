package canal_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// directTable has all types that are read here.
func directTable(r *rand.Rand) canaltest.Table {
	t := canaltest.Table{ID: 100, Database: "shop", Name: "outbox", Full: true}
	for i := range 1 + r.IntN(20) {
		c := canaltest.Column{Unsigned: r.IntN(2) == 0}
		switch r.IntN(12) {
		case 0:
			c.Type = mysql.MYSQL_TYPE_TINY
		case 1:
			c.Type = mysql.MYSQL_TYPE_SHORT
		case 2:
			c.Type = mysql.MYSQL_TYPE_INT24
		case 3:
			c.Type = mysql.MYSQL_TYPE_LONG
		case 4:
			c.Type = mysql.MYSQL_TYPE_LONGLONG
		case 5:
			c = canaltest.JSON("")
		case 6, 7:
			c = canaltest.Char("", []int{1, 36, 63, 64, 255}[r.IntN(5)])
		case 8:
			c = canaltest.VarChar("", 63)
		case 9:
			c = canaltest.VarChar("", 64)
		default:
			c = canaltest.Text("")
			c.Meta = uint16(1 + r.IntN(4))
		}
		c.Name = fmt.Sprintf("c%d", i)
		t.Columns = append(t.Columns, c)
	}
	return t
}

func directRow(r *rand.Rand, t canaltest.Table, omitted []bool) []any {
	row := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch {
		case omitted[i]:
			row[i] = canaltest.Omitted
		case r.IntN(5) == 0:
			row[i] = nil
		case c.Type == mysql.MYSQL_TYPE_VARCHAR, c.Type == mysql.MYSQL_TYPE_STRING, c.Type == mysql.MYSQL_TYPE_BLOB,
			c.Type == mysql.MYSQL_TYPE_JSON:
			most := 200
			if c.Type == mysql.MYSQL_TYPE_VARCHAR || c.Type == mysql.MYSQL_TYPE_STRING {
				most = int(c.Meta)
			}
			row[i] = string(bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(min(most, 200)+1)))
		default:
			row[i] = int64(r.Uint64())
		}
	}
	return row
}

func versionOf(t *testing.T, table canaltest.Table, head [][]byte, wanted []int) (*canal.TableVersion,
	*canaltest.Binlog) {
	t.Helper()
	b := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4)
	b.Events = nil
	b.Map(table)
	sh, err := canal.NewTableVersion(head, b.Events[0], wanted)
	if err != nil {
		t.Fatal(err)
	}
	b.Events = nil
	return sh, b
}

// Rows read here are those that go-mysql reads, for whole events and for such as end
// early or hold other bytes.
func TestDirectRowsAreGoMySQLs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	head := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4).Events
	decoded, refused := 0, 0
	for range 2000 {
		table := directTable(r)
		var wanted []int
		if r.IntN(3) > 0 {
			for i := range table.Columns {
				if r.IntN(2) == 0 {
					wanted = append(wanted, i)
				}
			}
			wanted = append([]int{0}, wanted...)
		}
		sh, b := versionOf(t, table, head, wanted)
		if !sh.Direct() {
			t.Fatalf("a table of %+v is not direct", table.Columns)
		}
		omitted := make([]bool, len(table.Columns))
		if wanted != nil {
			for i := 1; i < len(omitted); i++ {
				omitted[i] = !slices.Contains(wanted, i) && r.IntN(3) == 0
			}
		}
		var rows [][]any
		for range 2 * (1 + r.IntN(3)) {
			rows = append(rows, directRow(r, table, omitted))
		}
		if r.IntN(3) == 0 {
			b.Update(table, rows...)
		} else {
			b.Insert(table, rows...)
		}
		raw := b.Events[0]
		switch r.IntN(4) {
		case 0:
			raw = raw[:len(raw)-r.IntN(max(1, len(raw)-40))]
		case 1:
			raw[len(raw)-1-r.IntN(max(1, len(raw)-40))] ^= 1 << r.IntN(8)
		}
		got, gotErr := sh.Rows(bytes.Clone(raw))
		sh.LeaveToGoMySQL()
		want, wantErr := sh.Rows(bytes.Clone(raw))
		if (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%+v: error %v, go-mysql's way %v", table.Columns, gotErr, wantErr)
		}
		if gotErr != nil {
			refused++
			continue
		}
		decoded++
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v:\ngot  %+v\nwant %+v", table.Columns, got, want)
		}
	}
	if decoded < 500 || refused < 100 {
		t.Errorf("%d events decoded, %d refused: the test tests too little", decoded, refused)
	}
}

// Types that go-mysql reads are left to it, but only when they are wanted.
func TestNotDirect(t *testing.T) {
	for _, c := range []struct {
		t    byte
		meta uint16
		want bool
	}{
		{mysql.MYSQL_TYPE_DATETIME2, 6, false}, {mysql.MYSQL_TYPE_NEWDECIMAL, 0x0a02, false},
		{mysql.MYSQL_TYPE_BIT, 1, false},
		{mysql.MYSQL_TYPE_STRING, uint16(mysql.MYSQL_TYPE_ENUM)<<8 | 1, false},
		{mysql.MYSQL_TYPE_STRING, uint16(mysql.MYSQL_TYPE_SET)<<8 | 1, false},
		{mysql.MYSQL_TYPE_STRING, uint16(mysql.MYSQL_TYPE_STRING)<<8 | 144, true}, {mysql.MYSQL_TYPE_BLOB, 4, true},
	} {
		if canal.IsDirect(c.t, c.meta) != c.want {
			t.Errorf("type %d with %#x: direct is %t", c.t, c.meta, !c.want)
		}
	}
	table := canaltest.Outbox()
	table.Columns = append(table.Columns, canaltest.Column{Name: "at", Type: mysql.MYSQL_TYPE_DATE})
	head := mysqlLog().Events
	if sh, _ := versionOf(t, table, head, []int{0, 4}); !sh.Direct() {
		t.Error("a type that is not wanted counts")
	}
	if sh, _ := versionOf(t, table, head, []int{0, 5}); sh.Direct() {
		t.Error("a type that is wanted does not count")
	}
}
