package canal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// peak returns by how much the heap grows at the most while f runs, in MiB.
func peak(f func()) uint64 {
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
	})
	f()
	close(done)
	watch.Wait()
	return (max(most, before.HeapInuse) - before.HeapInuse) >> 20
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// packedQuery is the inside of a compressed transaction: a statement of so many bytes.
func packedQuery(t *testing.T, size int64) []byte {
	t.Helper()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, canaltest.HeaderLen)
	head[4] = byte(replication.QUERY_EVENT)
	binary.LittleEndian.PutUint32(head[9:], uint32(size))
	if _, err := z.Write(head); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(z, zeros{}, size-canaltest.HeaderLen); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// No server can have run a statement of 1.5 GiB (max_allowed_packet is 1 GiB at the
// most), so it takes no memory, however small it is packed.
func TestInflatedEventsHaveALimit(t *testing.T) {
	const size = 1536 << 20
	for name, build := range map[string]func(b *canaltest.Binlog, f *feed){
		"in a compressed transaction": func(b *canaltest.Binlog, _ *feed) {
			b.GTID(gtid(1), 0, 0)
			b.Payload(0, size, packedQuery(t, size))
		},
		"MariaDB's compressed statement": func(b *canaltest.Binlog, f *feed) {
			f.maria()
			*b = *mariaLog()
			b.GTID(maria(1), 0, 0)
			body := append(make([]byte, 13+1), 0x84, size>>24, size>>16&0xff, size>>8&0xff, size&0xff) // four bytes of length
			b.Raw(replication.MARIADB_QUERY_COMPRESSED_EVENT, 0, append(body,
				canaltest.DeflateMaria(make([]byte, 1<<20))[5:]...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := newFeed(t), mysqlLog()
			build(b, f)
			if n := peak(func() { f.walk(b) }); n > 256 {
				t.Errorf("it takes %d MiB of memory", n)
			}
			e := wantError(t, f.err, canal.TooLarge, gtidOf(f), "1610612736")
			if e.Retryable() {
				t.Error("reading again is to help")
			}
		})
	}
}

func gtidOf(f *feed) position.GTID {
	if f.flavor == position.MariaDB {
		return maria(1)
	}
	return gtid(1)
}

// An event that is large without a lie takes little more than its size.
func TestInflatedEventsTakeTheirSize(t *testing.T) {
	const size = 200 << 20
	b := mysqlLog()
	b.GTID(gtid(1), 0, 0)
	b.Payload(0, size, packedQuery(t, size))
	f := newFeed(t)
	if n := peak(func() { f.walk(b) }); n > 320 {
		t.Errorf("an event of %d MiB takes %d MiB of memory", size>>20, n)
	}
}

// endless is a packet that is gone on with in the next one, and so on.
type endless struct {
	left     []byte
	sequence byte
	sent     int
}

func (r *endless) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = append([]byte{0xff, 0xff, 0xff, r.sequence}, make([]byte, 1<<24-1)...)
		r.sequence++
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	r.sent += n
	return n, nil
}

// Without a limit a server can fill the memory of all nodes, one after the other.
func TestPacketsHaveALimit(t *testing.T) {
	r := &endless{}
	p := canal.NewPackets(r, 0)
	// The server's own limit of a packet is 1 GiB, which an event may pass by its header.
	if limit := p.SetLimit(100 << 20); limit < 1<<30 || limit > 1<<30+1<<20 {
		t.Errorf("the limit is %d", limit)
	}
	_, _, err := p.Next()
	wantError(t, err, canal.TooLarge, position.GTID{}, "more than any event")
	if r.sent > 120<<20 {
		t.Errorf("%d MiB were read", r.sent>>20)
	}
}

// A transaction may set very many savepoints, since their release is not logged: they take
// no time for one another, and what they take of the memory has a limit.
func TestSavepointsHaveALimit(t *testing.T) {
	own := func(n int) string { return fmt.Sprintf("s139876543210_x%d", n) }
	walk := func(f *feed, n int, name func(int) string) {
		f.start()
		b := mysqlLog()
		b.GTID(gtid(1), 0, 0)
		b.Begin()
		insert(b, 1)
		f.walk(b)
		for i := 0; i < n && f.err == nil; i++ {
			b.Query("shop", "SAVEPOINT "+name(i))
			f.walk(b)
		}
		insert(b, 2)
		b.Query("shop", "ROLLBACK TO "+name(n/2))
		insert(b, 3)
		b.XID()
		if f.err == nil {
			f.walk(b)
		}
	}
	f := newFeed(t)
	walk(f, 300_000, own)
	f.want("1[1 3]")
	f = newFeed(t)
	walk(f, 600_000, func(int) string { return "one" })
	f.want("1[1 3]")
	f = newFeed(t)
	if n := peak(func() { walk(f, 2_000_000, own) }); n > 256 {
		t.Errorf("they take %d MiB of memory", n)
	}
	f.fails(canal.TooLarge, gtid(1), "savepoints")
}

// wide is an outbox table with as many columns as a table may have.
func wide(database int) canaltest.Table {
	o := canaltest.Outbox()
	o.Database = fmt.Sprint("shop", database)
	for i := len(o.Columns); i < 4096; i++ {
		o.Columns = append(o.Columns, canaltest.Column{Name: fmt.Sprint("c", i), Type: mysql.MYSQL_TYPE_LONG})
	}
	return o
}

// What is remembered of outbox tables has a limit, also when one transaction needs it all.
func TestTableMapsHaveALimit(t *testing.T) {
	values := make([]any, 4096)
	copy(values, row(1))
	const tables = 400
	one := newFeed(t)
	if n := peak(func() {
		b := mysqlLog()
		b.Transaction(gtid(1), func() {
			for i := range tables {
				b.Map(wide(i))
				b.Insert(wide(i), values)
			}
		})
		one.walk(b)
	}); n > 256 {
		t.Errorf("those of one transaction take %d MiB of memory", n)
	}
	one.fails(canal.TooLarge, gtid(1), "outbox tables")
	each := newFeed(t)
	if n := peak(func() {
		b := mysqlLog()
		for i := range tables {
			b.Transaction(gtid(uint64(i+1)), func() { b.Map(wide(i)); b.Insert(wide(i), values) })
			each.walk(b)
			each.out = nil
		}
	}); n > 256 || each.err != nil {
		t.Errorf("those of many transactions take %d MiB of memory: %v", n, each.err)
	}
}

// A server's GTID set has no more intervals than a server comes by.
func TestGTIDSetsHaveALimit(t *testing.T) {
	for name, more := range map[string]func(n int) string{
		"intervals": func(n int) string { return fmt.Sprint(":", 2*n) },
		"servers":   func(n int) string { return fmt.Sprintf(",%08x-71ca-11e1-9e33-c80aa9429562:1", n) },
	} {
		var text strings.Builder
		text.WriteString(sid.String() + ":1")
		for n := 1; text.Len() < 31<<20; n++ {
			text.WriteString(more(n))
		}
		var err error
		if n := peak(func() { _, err = canal.ParseServerSet(position.MySQL, text.String()) }); n > 64 {
			t.Errorf("%s: it takes %d MiB of memory", name, n)
		}
		wantError(t, err, canal.TooLarge, position.GTID{}, "intervals")
	}
	if _, err := canal.ParseServerSet(position.MySQL, sid.String()+strings.Repeat(":7", 100_000)); err != nil {
		t.Error(err)
	}
}
