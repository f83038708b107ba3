package canal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// shopModel is a database with a binlog: two tables whose rows are inserted, deleted,
// updated and get other keys at every opportunity.
type shopModel struct {
	rnd    *rand.Rand
	tables []*schema.Table
	rows   []map[int64][]any // by table and key: key, life, note
	log    []schema.Row
	lives  int64 // rows that were ever inserted
	writes int   // transactions to come
	// order is the place of a key in the order of the server.
	order func(key int64) int64
}

func newShopModel(seed uint64) *shopModel {
	m := &shopModel{rnd: rand.New(rand.NewPCG(seed, 1)), writes: 150, order: func(k int64) int64 { return k }}
	if seed%2 == 1 { // an order that only the server knows
		m.order = func(k int64) int64 { return k * 37 % 61 }
	}
	for _, name := range []string{"a", "b"} {
		t := &schema.Table{Name: schema.Name{Database: "shop", Table: name}, PrimaryKey: []int{0}}
		for _, c := range []string{"id", "life", "note"} {
			t.Columns = append(t.Columns, schema.Column{Name: c, Type: schema.BigInt})
		}
		m.tables = append(m.tables, t)
		m.rows = append(m.rows, map[int64][]any{})
	}
	return m
}

// write commits one transaction.
func (m *shopModel) write() {
	if m.writes == 0 {
		return
	}
	m.writes--
	for range 1 + m.rnd.IntN(3) {
		i := m.rnd.IntN(len(m.tables))
		key := m.rnd.Int64N(60)
		row, there := m.rows[i][key]
		change := schema.Row{Table: m.tables[i]}
		switch {
		case !there:
			m.lives++
			change.Op, change.After = schema.Insert, []any{key, m.lives, int64(0)}
		case m.rnd.IntN(4) == 0:
			change.Op, change.Before, change.After = schema.Update, row, []any{key, row[1], row[2].(int64) + 1}
		case m.rnd.IntN(4) == 0:
			to := m.rnd.Int64N(60)
			if _, taken := m.rows[i][to]; taken {
				continue
			}
			m.lives++ // under its new key the stream brings it
			change.Op, change.Before, change.After = schema.Update, row, []any{to, m.lives, row[2]}
		default:
			change.Op, change.Before = schema.Delete, row
		}
		if change.Before != nil {
			delete(m.rows[i], change.Before[0].(int64))
		}
		if change.After != nil {
			m.rows[i][change.After[0].(int64)] = change.After
		}
		m.log = append(m.log, change)
	}
}

func (m *shopModel) some(n int) {
	for range m.rnd.IntN(n + 1) {
		m.write()
	}
}

// modelSource is one connection to the model.
type modelSource struct {
	*shopModel
	read int // of the log
}

func (s *modelSource) chunk(_ context.Context, t *snapshotTable, after []string) (rows []selectedRow, last bool,
	err error) {
	s.some(2)
	keys := slices.SortedFunc(maps.Keys(s.rows[t.index]), func(a, b int64) int { return int(s.order(a) - s.order(b)) })
	limit := 1 + s.rnd.IntN(5)
	for _, k := range keys {
		if after != nil {
			if done, _ := strconv.ParseInt(after[0], 10, 64); s.order(k) <= s.order(done) {
				continue
			}
		}
		if len(rows) == limit {
			break
		}
		rows = append(rows, selectedRow{table: s.tables[t.index], key: []string{strconv.FormatInt(k, 10)},
			image: slices.Clone(s.rows[t.index][k])})
	}
	last = len(rows) < limit
	s.some(2)
	return rows, last, nil
}

func (s *modelSource) catchUp(_ context.Context, f func([]schema.Row) error) error {
	for now := len(s.log); s.read < now; {
		to := s.read + 1 + s.rnd.IntN(len(s.log)-s.read)
		batch := s.log[s.read:to]
		s.read = to
		if err := f(batch); err != nil {
			return err
		}
		s.some(1)
	}
	return nil
}

func (s *modelSource) sortable(_ context.Context, _ *snapshotTable, keys [][]string) ([][]byte, error) {
	var out [][]byte
	for _, key := range keys {
		k, err := strconv.ParseInt(key[0], 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Appendf(nil, "%05d", s.order(k)))
	}
	return out, nil
}

func (*modelSource) whole(*snapshotTable, *schema.Table, []any) error { return nil }

var errCrash = errors.New("crash")

// runModel reads the snapshot rows with crashes and returns those that were made
// durable.
func runModel(t *testing.T, m *shopModel, from int) []schema.Row {
	t.Helper()
	var durable []schema.Row
	at, done := position.Snapshot{}, false
	for lives := 0; !done; lives++ {
		var tables []*snapshotTable
		for i, tab := range m.tables {
			key, err := newSnapshotKey(tab, nil)
			if err != nil {
				t.Fatal(err)
			}
			tables = append(tables, &snapshotTable{name: tab.Name, index: i, key: key})
		}
		led, err := openChangeBuffer(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		crash := m.rnd.IntN(40)
		if lives > 20 {
			crash = 1 << 20
		}
		var sent []txn.Transaction
		w := &snapshotReader{tables: tables, source: &modelSource{shopModel: m, read: from}, changeBuffer: led, at: at,
			begin: func(*snapshotTable) {}, emit: func(tx txn.Transaction) error {
				if sent = append(sent, tx); len(sent) > crash {
					return errCrash
				}
				return nil
			}}
		err = w.run(t.Context())
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if err := led.close(); err != nil {
			t.Fatal(err)
		}
		keep := len(sent)
		if err != nil {
			keep = m.rnd.IntN(len(sent) + 1) // the rest was read and never became durable
		}
		for _, tx := range sent[:keep] {
			durable = append(durable, tx.Rows...)
			at, done = *tx.Commit.Snapshot, tx.Commit.Snapshot.Done
		}
		m.some(20)
	}
	return durable
}

// Whatever is written meanwhile, and wherever it is cut off: each row that stood
// there at the start comes once, in the order of keys, and no other.
func TestSnapshotSweepModel(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		m := newShopModel(seed)
		for range 40 {
			m.write()
		}
		want := map[int64]bool{}
		for _, rows := range m.rows {
			for _, r := range rows {
				want[r[1].(int64)] = true
			}
		}
		got := runModel(t, m, len(m.log))
		last := map[string]int64{}
		for _, r := range got {
			life := r.After[1].(int64)
			if !want[life] {
				t.Fatalf("seed %d: row %v came twice, or was not there at the start", seed, r.After)
			}
			delete(want, life)
			place := m.order(r.After[0].(int64))
			if before, ok := last[r.Table.Table]; ok && place <= before {
				t.Fatalf("seed %d: row %v came behind one with a later key", seed, r.After)
			}
			last[r.Table.Table] = place
			if r.Op != schema.Read {
				t.Fatalf("seed %d: operation %d", seed, r.Op)
			}
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: %d rows are lost", seed, len(want))
		}
	}
}
