package canal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

const lastMicros = 1_700_000_001_234_567

// last appends the transaction 100 that was published, committed at micros.
func last(b *canaltest.Binlog, micros, length uint64, body func()) {
	b.GTID(gtid(100), micros, length)
	b.Begin()
	body()
	b.XID()
}

func TestF18LastTransactionIsCompared(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(b *canaltest.Binlog)
		stored time.Time // lastMicros by default
		want   string    // what is handed on, if the walk can go on
		err    error
		kind   canal.Kind
	}{
		{
			name:  "the same",
			build: func(b *canaltest.Binlog) { last(b, lastMicros, 0, func() { insert(b, 1) }) },
			want:  "101[9]",
		},
		{
			name:  "another",
			build: func(b *canaltest.Binlog) { last(b, lastMicros+1, 0, func() { insert(b, 1) }) },
			kind:  canal.Diverged,
		},
		{
			name: "others come first",
			build: func(b *canaltest.Binlog) {
				b.Transaction(gtid(50), func() { insert(b, 2) })
				last(b, lastMicros, 0, func() { insert(b, 1) })
			},
			err: canal.ErrProven,
		},
		{
			name: "others come first and it is another",
			build: func(b *canaltest.Binlog) {
				b.Transaction(gtid(50), func() { insert(b, 2) })
				last(b, lastMicros+1, 0, func() { insert(b, 1) })
			},
			kind: canal.Diverged,
		},
		{
			name:  "so large that a new dump is cheaper",
			build: func(b *canaltest.Binlog) { b.GTID(gtid(100), lastMicros, 1<<30) },
			err:   canal.ErrProven,
		},
		{
			name: "compressed, not inflated",
			build: func(b *canaltest.Binlog) {
				b.GTID(gtid(100), lastMicros, 0)
				b.Payload(0, 1<<40, []byte("nothing that could be inflated"))
			},
			want: "101[9]",
		},
		{
			name:  "a younger one comes",
			build: func(b *canaltest.Binlog) { b.Transaction(gtid(150), func() { insert(b, 2) }) },
			err:   canal.ErrAbsent,
		},
		{
			name:  "the server has nothing more",
			build: func(b *canaltest.Binlog) { b.Heartbeat("binlog.000001"); b.Heartbeat("binlog.000001") },
			err:   canal.ErrAbsent,
		},
		{
			name: "one heartbeat says nothing",
			build: func(b *canaltest.Binlog) {
				b.Heartbeat("binlog.000001")
				last(b, lastMicros, 0, func() { insert(b, 1) })
			},
			want: "101[9]",
		},
		{
			name: "heartbeats while the server passes over what is known",
			build: func(b *canaltest.Binlog) {
				for range 3 { // each says how far it is
					b.Raw(replication.HEARTBEAT_EVENT, 0, []byte("binlog.000001"))
				}
				last(b, lastMicros, 0, func() { insert(b, 1) })
			},
			want: "101[9]",
		},
		{
			name: "what would be a fault in it is none",
			build: func(b *canaltest.Binlog) {
				last(b, lastMicros, 0, func() { b.Query("shop", "INSERT INTO outbox VALUES (1)") })
			},
			want: "101[9]",
		},
		{
			name:   "a server without commit times, the same second",
			build:  func(b *canaltest.Binlog) { last(b, 0, 0, func() { insert(b, 1) }) },
			stored: time.Unix(1_700_000_000, 0),
			want:   "101[9]",
		},
		{
			name: "a server without commit times, known by its last event",
			build: func(b *canaltest.Binlog) {
				last(b, 0, 0, func() { insert(b, 1); b.Seconds++ })
			},
			stored: time.Unix(1_700_000_001, 0),
			want:   "101[9]",
		},
		{
			name:   "a server without commit times, another second",
			build:  func(b *canaltest.Binlog) { last(b, 0, 0, func() { insert(b, 1) }) },
			stored: time.Unix(1_700_000_002, 0),
			kind:   canal.Diverged,
		},
		{
			name:   "read when the server had no commit times, which it has now",
			build:  func(b *canaltest.Binlog) { last(b, lastMicros, 0, func() { insert(b, 1) }) },
			stored: time.Unix(1_700_000_000, 0),
			want:   "101[9]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed(t)
			f.start()
			if c.stored.IsZero() {
				c.stored = time.UnixMicro(lastMicros)
			}
			proven := 0
			f.w.Await(gtid(100), c.stored, set(t, sid.String()+":1-100").Set, func() { proven++ })
			b := mysqlLog()
			c.build(b)
			if c.want != "" {
				b.Transaction(gtid(101), func() { insert(b, 9) })
			}
			f.walk(b)
			switch {
			case c.want != "":
				f.want(c.want)
			case c.err != nil:
				if !errors.Is(f.err, c.err) {
					t.Errorf("the walk ended with %v, want %v", f.err, c.err)
				}
			default:
				wantError(t, f.err, c.kind, gtid(100), "committed at")
			}
			if got, want := proven, map[bool]int{true: 1}[c.want != ""]; got != want {
				t.Errorf("proven %d times, want %d", got, want)
			}
			if c.want == "" && len(f.out) > 0 {
				t.Errorf("handed on %s", idsOf(f.out))
			}
			want := map[bool]uint64{true: 1}[c.want != ""]
			if got := f.w.Counts(); got[3] != want || got[4] != 0 {
				t.Errorf("counted %v", got)
			}
		})
	}
}

// A transaction that was published in part is compared when it comes.
func TestF18PartialTransactionIsCompared(t *testing.T) {
	for _, micros := range []uint64{lastMicros, lastMicros + 1} {
		f := newFeed(t)
		f.from.Partials = []position.Partial{{GTID: gtid(100), Committed: time.UnixMicro(lastMicros)}}
		b := mysqlLog()
		last(b, micros, 0, func() { insert(b, 1, 2) })
		f.walk(b)
		if micros == lastMicros {
			f.want("100[1 2]")
		} else {
			wantError(t, f.err, canal.Diverged, gtid(100))
		}
	}
}

// asks lists the sets that were asked for, without the UUID.
func (f *fake) asks() string {
	var all []string
	for _, d := range f.Dumps() {
		all = append(all, strings.TrimPrefix(d.Set, sid.String()+":"))
	}
	return strings.Join(all, " ")
}

func TestF18OpenComparesTheLastTransaction(t *testing.T) {
	at := time.UnixMicro(lastMicros)
	published := func(b *canaltest.Binlog, micros uint64) { last(b, micros, 0, func() { insert(b, 1) }) }
	for _, c := range []struct {
		name   string
		events func(b *canaltest.Binlog) // of the first dump
		then   func(*canaltest.Sender) error
		from   func(p *position.Position)
		set    func(f *fake)
		asks   string
		rows   string
		kind   canal.Kind
	}{
		{name: "in one dump", events: func(b *canaltest.Binlog) { published(b, lastMicros) }, asks: "1-99"},
		{
			name: "others first", asks: "1-99 1-100",
			events: func(b *canaltest.Binlog) {
				b.Transaction(gtid(50), func() { insert(b, 7) })
				published(b, lastMicros)
			},
		},
		{name: "another", events: func(b *canaltest.Binlog) { published(b, lastMicros+1) }, asks: "1-99",
			kind: canal.Diverged},
		{
			name: "absent", asks: "1-99 1-100",
			events: func(b *canaltest.Binlog) { b.Transaction(gtid(101), func() { insert(b, 9) }) },
		},
		{
			name: "purged while asking", asks: "1-99 1-100", events: func(*canaltest.Binlog) {},
			then: func(*canaltest.Sender) error {
				return mysql.NewError(mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG,
					"Cannot replicate because the source purged required binary logs.")
			},
		},
		{
			name: "cut while asking", asks: "1-99", events: func(*canaltest.Binlog) {}, kind: canal.Disconnected,
			then: func(to *canaltest.Sender) error { to.Cut(); return io.EOF },
		},
		{name: "purged before", set: func(f *fake) { f.Purged = sid.String() + ":1-100" }, asks: "1-100"},
		{name: "a position without a last one", from: func(p *position.Position) { p.Last = position.GTID{} }, asks: "1-100"},
		{name: "a last one without a time", from: func(p *position.Position) { p.Committed = time.Time{} }, asks: "1-100"},
		{name: "a set that was changed by hand", from: func(p *position.Position) { p.Last = gtid(200) }, asks: "1-100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := mysqlLog()
			if c.events != nil {
				c.events(b)
			}
			first := events(b, func(to *canaltest.Sender) error {
				if c.then != nil {
					return c.then(to)
				}
				return to.Event(lastOf(func(b *canaltest.Binlog) { b.Heartbeat("binlog.000001") }))
			})
			next := mysqlLog()
			next.Transaction(gtid(101), func() { insert(next, 9) })
			second := events(next, silence)
			f := newFake(t, nil)
			f.Serve = func(d canaltest.Dump, to *canaltest.Sender) error {
				if strings.HasSuffix(d.Set, "1-100") {
					return second(d, to)
				}
				if err := first(d, to); err != nil || c.kind != 0 || c.asks != "1-99" {
					return err
				}
				for _, e := range next.Events[2:] {
					if err := to.Event(e); err != nil {
						return err
					}
				}
				return nil
			}
			if c.set != nil {
				c.set(f)
			}
			from := set(t, sid.String()+":1-100")
			from.Last, from.Committed = gtid(100), at
			if c.from != nil {
				c.from(&from)
			}
			if c.kind != 0 {
				_, err := canal.Open(t.Context(), f.cfg, from)
				var e *canal.Error
				if !errors.As(err, &e) || e.Kind != c.kind {
					t.Errorf("got %v, want a %s", err, c.kind)
				}
			} else if got := f.open(from).until(9).rows(); got != "9" {
				t.Errorf("rows %s", got)
			}
			if got := f.asks(); got != c.asks {
				t.Errorf("asked for %s, want %s", got, c.asks)
			}
			for _, q := range f.Queries() {
				if strings.HasPrefix(q, "KILL") {
					t.Errorf("the server was told to %s", q)
				}
			}
		})
	}
}

// lastOf is the last event that f appends to a binlog.
func lastOf(f func(b *canaltest.Binlog)) []byte {
	b := mysqlLog()
	f(b)
	return b.Events[len(b.Events)-1]
}

func TestOpenEndsWithItsContextWhileComparing(t *testing.T) {
	f := newFake(t, events(mysqlLog(), silence))
	f.cfg.Heartbeat = time.Hour
	from := set(t, sid.String()+":1-100")
	from.Last, from.Committed = gtid(100), time.UnixMicro(lastMicros)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	f.cfg.Progress = func(step string) {
		if strings.HasPrefix(step, "comparing") {
			time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		}
	}
	if _, err := canal.Open(ctx, f.cfg, from); !errors.Is(err, why) {
		t.Errorf("Open: %v", err)
	}
}

// What the server lacks, and whose it was.
func TestF15WhoLostIt(t *testing.T) {
	const other = "11111111-2222-3333-4444-555555555555"
	ours := fmt.Sprintf("%s:1-100,%s:1-5", sid, other)
	accept := func(context.Context, *position.Set, string) error { return nil }
	refuse := errors.New("not recorded")
	for _, c := range []struct {
		name string
		from string
		set  func(f *fake)
		kind canal.Kind
		diff string
		lost string
	}{
		{"its own", sid.String() + ":1-101", nil, canal.Behind, sid.String() + ":101", ""},
		{"its own, whatever the policy", sid.String() + ":1-101", func(f *fake) { f.cfg.OnLostTransactions = accept },
			canal.Behind, sid.String() + ":101", ""},
		{"both", other + ":1," + sid.String() + ":1-101", func(f *fake) { f.cfg.OnLostTransactions = accept }, canal.Behind,
			"", ""},
		{"others'", ours, nil, canal.LostTransactions, other + ":1-5", ""},
		{"others', accepted", ours, func(f *fake) { f.cfg.OnLostTransactions = accept }, 0, "", other + ":1-5"},
		{"others', not recorded", ours, func(f *fake) {
			f.cfg.OnLostTransactions = func(context.Context, *position.Set, string) error { return refuse }
		}, 0, "", ""},
		{"others', partly known", ours, func(f *fake) { f.cfg.Accepted = set(f.t, other+":4-5").Set }, canal.LostTransactions,
			other + ":1-3", ""},
		{"others', known", ours, func(f *fake) { f.cfg.Accepted = set(f.t, other+":1-5").Set }, 0, "", ""},
		{"known and back", ours, func(f *fake) {
			f.cfg.Accepted = set(f.t, other+":4-5").Set
			f.Executed = ours
		}, canal.Diverged, other + ":4-5", ""},
		{"a replica may get them yet", ours, func(f *fake) { f.SetReadOnly(true); f.cfg.OnLostTransactions = accept },
			canal.Lagging, other + ":1-5", ""},
		{"received and not applied", ours, func(f *fake) { f.Received = other + ":1-5"; f.cfg.OnLostTransactions = accept },
			canal.Lagging, other + ":1-5", ""},
		{"of an origin that does not count", ours, func(f *fake) {
			f.cfg.Origins = func(id uuid.UUID) (bool, error) {
				return id == sid, nil
			}
		}, 0, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, events(mysqlLog(), silence))
			if c.set != nil {
				c.set(f)
			}
			s, err := canal.Open(t.Context(), f.cfg, set(t, c.from))
			var e *canal.Error
			switch {
			case c.kind != 0:
				if e = wantError(t, err, c.kind, position.GTID{}); c.diff != "" && e.Difference != c.diff {
					t.Errorf("difference is %s, want %s", e.Difference, c.diff)
				}
				return
			case strings.HasSuffix(c.name, "not recorded"):
				if !errors.Is(err, refuse) {
					t.Errorf("got %v", err)
				}
				return
			case err != nil:
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.Status().LostTransactions; (got == nil) != (c.lost == "") || got != nil && got.String() != c.lost {
				t.Errorf("lost are %v, want %q", got, c.lost)
			}
		})
	}
	f := newFake(t, nil)
	from := set(t, sid.String()+":1-100")
	from.Partials = []position.Partial{{GTID: gtid(101)}}
	_, err := canal.Open(t.Context(), f.cfg, from)
	if e := wantError(t, err, canal.Behind, position.GTID{}); e.Difference != gtid(101).String() {
		t.Errorf("the transaction published in part: %s", e.Difference)
	}
}

// The set that is asked for holds what the server itself says of origins that do
// not count, so that it has no reason to refuse.
func TestB012AskedSet(t *testing.T) {
	const other = "11111111-2222-3333-4444-555555555555"
	asked := make(chan string, 1)
	f := newFake(t, func(d canaltest.Dump, _ *canaltest.Sender) error { asked <- d.Set; return nil })
	f.Executed = sid.String() + ":1-100," + other + ":1-50"
	f.Purged = other + ":1-40"
	f.cfg.Origins = func(id uuid.UUID) (bool, error) { return id == sid, nil }
	f.open(set(t, sid.String()+":1-90,"+other+":1-3:99"))
	want := set(t, sid.String()+":1-90,"+other+":1-50").Set
	if got := set(t, <-asked).Set; !got.Equal(want) {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// Without a commit time in the GTID event (as from a source before MySQL 8) what is
// compared is the time of what commits, and of a compressed transaction that must be
// what is seen of it without inflating.
func TestF18CompressedTransactionWithoutCommitTime(t *testing.T) {
	log := func() *canaltest.Binlog {
		b := mysqlLog()
		b.GTID(gtid(1), 0, 0)
		b.Compressed(func(in *canaltest.Binlog) {
			in.Seconds -= 5 // when the statement began
			in.Begin()
			insert(in, 1)
			in.XID()
		})
		return b
	}
	first := newFeed(t).walk(log())
	first.want("1[1]")
	f := newFeed(t)
	f.start()
	f.w.Await(gtid(1), first.out[0].Commit.Committed, set(t, sid.String()+":1").Set, func() {})
	f.walk(log()).want("")
}
