package canal_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

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
			b.Raw(replication.MARIADB_QUERY_COMPRESSED_EVENT, 0, append(body, canaltest.DeflateMaria(make([]byte, 1<<20))[5:]...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := newFeed(t), mysqlLog()
			build(b, f)
			if n := peak(func() { f.walk(b) }); n > 256 {
				t.Errorf("it takes %d MiB of memory", n)
			}
			e := wantError(t, f.err, canal.TooLarge, gtidOf(f), "1610612736")
			if e.Retry() {
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
