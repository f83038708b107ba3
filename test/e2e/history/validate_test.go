package history

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const testPartitions = 3

// run is a hand-made run: what is read can be changed before it is checked.
type run struct {
	journal []*Txn
	ledger  []LedgerRow
	records []Record
}

// goodRun has transactions of one and of several rows over several keys, one that
// rolled back, one with a savepoint, one whose outcome only the ledger knows, and
// one that was unknown and rolled back.
func goodRun() *run {
	r := &run{}
	seqs := make(map[int32]uint64)
	write := func(t *Txn, commits bool) {
		r.journal = append(r.journal, t)
		if !commits {
			return
		}
		mine := make(map[int32]uint64)
		for n := uint32(1); n <= t.Rows; n++ {
			p := PartitionOf([]byte(Key(t.KeyOf(n))), testPartitions)
			if mine[p] == 0 {
				seqs[p]++
				mine[p] = seqs[p]
				r.ledger = append(r.ledger, LedgerRow{t.ID, p, seqs[p]})
			}
			if t.Keeps(n) {
				r.records = append(r.records, recordOf(t, n, p, mine[p]))
			}
		}
	}
	for id := uint64(1); id <= 20; id++ {
		write(&Txn{ID: id, Keys: []int32{int32(id % 5)}, Rows: 1, Size: 40, Outcome: Committed}, true)
	}
	write(&Txn{ID: 21, Keys: []int32{1}, Rows: 2, Size: 40, Outcome: RolledBack}, false)
	write(&Txn{ID: 22, Keys: []int32{0, 1, 2, 3}, Rows: 12, Size: 40, Outcome: Committed}, true)
	write(&Txn{ID: 23, Keys: []int32{2}, Rows: 5, UndoneFrom: 2, UndoneTo: 3, Size: 40, Outcome: Committed}, true)
	write(&Txn{ID: 24, Keys: []int32{2}, Rows: 2, Size: 40, Outcome: Unknown}, true)
	write(&Txn{ID: 25, Keys: []int32{3}, Rows: 2, Size: 40, Outcome: Unknown}, false)
	for id := uint64(26); id <= 45; id++ {
		write(&Txn{ID: id, Keys: []int32{int32(id % 5)}, Rows: 2, Size: 0, Outcome: Committed}, true)
	}
	return r
}

func recordOf(t *Txn, n uint32, partition int32, seq uint64) Record {
	row := Row{t.ID, n}
	body := AppendBody(nil, row, int(t.Size))
	before, after := Payload{Row: row, Key: Key(t.KeyOf(n)), CRC: Checksum(body), Size: len(body)}.Head()
	return Record{
		Topic: "t", Partition: partition, Key: []byte(Key(t.KeyOf(n))),
		Value:     []byte(before + itoa(seq) + after + string(body)),
		Headers:   []Header{{"id", []byte(row.ID())}, {"eventType", []byte(EventType)}},
		Timestamp: 1_700_000_000_000,
	}
}

func itoa(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// history numbers the records and joins the run.
func (r *run) history(t *testing.T) *History {
	t.Helper()
	offsets := make(map[int32]int64)
	var seen []Seen
	for _, rec := range r.records {
		rec.Offset = offsets[rec.Partition]
		offsets[rec.Partition]++
		seen = append(seen, See(&rec))
	}
	h, err := New(testPartitions, r.journal, r.ledger, seen)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// of returns the indices of the records of partition p.
func (r *run) of(p int32) (indices []int) {
	for i := range r.records {
		if r.records[i].Partition == p {
			indices = append(indices, i)
		}
	}
	return indices
}

// replay appends a copy of the records of partition p from the from-th up to the
// to-th, as a restart would publish them again.
func (r *run) replay(p int32, from, to int) {
	for _, i := range r.of(p)[from:to] {
		r.records = append(r.records, r.records[i])
	}
}

func (r *run) remove(i int) { r.records = slices.Delete(r.records, i, i+1) }

// find returns the index of the record of a row.
func (r *run) find(row Row) int {
	return slices.IndexFunc(r.records, func(rec Record) bool { return See(&rec).Row == row })
}

var allValidators = map[error]Validator{
	ErrLost: NothingLost, ErrTwice: NothingTwice, ErrPartitionOrder: InOrderPerPartition, ErrKeyOrder: InOrderPerKey,
	ErrInvented: NothingInvented, ErrPayload: PayloadsEqual, ErrPartition: PartitionIsMurmur2,
	ErrRewind: func(h *History) error { return RewindOnly(h, Bound{Rewinds: 2, Rows: 10}) },
}

func TestValidators(t *testing.T) {
	p2 := PartitionOf([]byte(Key(2)), testPartitions)
	tests := []struct {
		name    string
		change  func(*run)
		broken  []error
		example string // in one of the errors
	}{
		{name: "undisturbed run"},
		{
			name:   "last record of a partition not read",
			change: func(r *run) { r.remove(r.of(p2)[len(r.of(p2))-1]) },
			broken: []error{ErrLost},
		},
		{
			name:    "record in the middle not read",
			change:  func(r *run) { r.remove(r.find(Row{22, 3})) },
			broken:  []error{ErrLost, ErrRewind},
			example: "row 3 of transaction 22 (key key-00002",
		},
		{
			name:    "committed without an answer and not read",
			change:  func(r *run) { r.remove(r.find(Row{24, 1})); r.remove(r.find(Row{24, 2})) },
			broken:  []error{ErrLost, ErrRewind},
			example: "row 2 of transaction 24",
		},
		{
			name:    "one record twice in a row",
			change:  func(r *run) { i := r.find(Row{8, 1}); r.records = slices.Insert(r.records, i, r.records[i]) },
			broken:  []error{ErrTwice},
			example: "row 1 of transaction 8 is at offset",
		},
		{
			name:   "restart publishes the tail again",
			change: func(r *run) { n := len(r.of(p2)); r.replay(p2, n-4, n) },
			broken: []error{ErrTwice, ErrPartitionOrder, ErrKeyOrder},
		},
		{
			name:   "restart publishes the tail again but leaves its middle out",
			change: func(r *run) { n := len(r.of(p2)); r.replay(p2, n-4, n-3); r.replay(p2, n-1, n) },
			broken: []error{ErrTwice, ErrPartitionOrder, ErrKeyOrder, ErrRewind},
		},
		{
			name: "restart leaves a gap that a second restart fills",
			change: func(r *run) {
				i := r.of(p2)
				cut := append(slices.Clone(r.records[i[6]:i[6]+1]), r.records[i[7]])
				r.remove(i[7])
				r.remove(i[6])
				r.records = append(r.records, cut...)
				r.replay(p2, 6, 8)
			},
			broken: []error{ErrTwice, ErrPartitionOrder, ErrKeyOrder, ErrRewind},
		},
		{
			name: "two records of one partition swapped",
			change: func(r *run) {
				i, j := r.find(Row{23, 1}), r.find(Row{23, 5})
				r.records[i], r.records[j] = r.records[j], r.records[i]
			},
			broken:  []error{ErrPartitionOrder, ErrKeyOrder, ErrRewind},
			example: "which committed later",
		},
		{
			name:    "row of a rolled-back transaction",
			change:  func(r *run) { r.records = append(r.records, recordOf(r.journal[20], 1, partitionOfKey(1), 99)) },
			broken:  []error{ErrInvented},
			example: "row 1 of transaction 21 was rolled back with its transaction",
		},
		{
			name:    "row of a transaction that got no answer and did not commit",
			change:  func(r *run) { r.records = append(r.records, recordOf(r.journal[24], 1, partitionOfKey(3), 99)) },
			broken:  []error{ErrInvented},
			example: "row 1 of transaction 25",
		},
		{
			name: "row of a savepoint that was rolled back",
			change: func(r *run) {
				i := r.find(Row{23, 1})
				seq := See(&r.records[i]).Seq
				r.records = slices.Insert(r.records, i+1, recordOf(r.journal[22], 2, p2, seq))
			},
			broken:  []error{ErrInvented},
			example: "rolled back to a savepoint",
		},
		{
			name: "record that nobody wrote",
			change: func(r *run) {
				r.records = append(r.records, Record{Topic: "t", Key: []byte("key-00001"), Value: []byte("hello")})
			},
			broken:  []error{ErrInvented, ErrPayload, ErrPartition},
			example: "no head line",
		},
		{
			name:    "one byte of a body changed",
			change:  func(r *run) { v := r.records[3].Value; v[len(v)-1] ^= 1 },
			broken:  []error{ErrPayload},
			example: "CRC32C",
		},
		{
			name:    "body cut",
			change:  func(r *run) { v := r.records[3].Value; r.records[3].Value = v[:len(v)-1] },
			broken:  []error{ErrPayload},
			example: "39 bytes, 40 were written",
		},
		{
			name: "another body with a checksum that fits",
			change: func(r *run) {
				txn := *r.journal[3]
				txn.Size = 60
				r.records[3] = recordOf(&txn, 1, r.records[3].Partition, See(&r.records[3]).Seq)
			},
			broken:  []error{ErrPayload},
			example: "60 bytes, 40 were written",
		},
		{
			name:    "header id missing",
			change:  func(r *run) { r.records[3].Headers = r.records[3].Headers[1:] },
			broken:  []error{ErrPayload},
			example: "header id",
		},
		{
			name:    "header id of another row",
			change:  func(r *run) { r.records[3].Headers = r.records[4].Headers },
			broken:  []error{ErrPayload},
			example: "header id",
		},
		{
			name:    "header id twice",
			change:  func(r *run) { r.records[3].Headers = append(r.records[3].Headers, r.records[3].Headers[0]) },
			broken:  []error{ErrPayload},
			example: "header id",
		},
		{
			name:    "event type missing",
			change:  func(r *run) { r.records[3].Headers = r.records[3].Headers[:1] },
			broken:  []error{ErrPayload},
			example: "eventType",
		},
		{
			name:    "record key differs from the row's",
			change:  func(r *run) { r.records[3].Key = append([]byte("x"), r.records[3].Key...) },
			broken:  []error{ErrPayload},
			example: "record key",
		},
		{
			name: "sequence number of another transaction",
			change: func(r *run) {
				i := r.find(Row{45, 2})
				r.records[i] = recordOf(r.journal[44], 2, r.records[i].Partition, 77)
			},
			broken:  []error{ErrPayload},
			example: "carries sequence number 77",
		},
		{
			name: "record in another partition",
			change: func(r *run) {
				i := r.of(p2)
				r.records[i[len(i)-1]].Partition = (p2 + 1) % testPartitions
			},
			broken:  []error{ErrPartition},
			example: "is in partition",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := goodRun()
			if tt.change != nil {
				tt.change(r)
			}
			h := r.history(t)
			var text string
			for promise, validate := range allValidators {
				err := validate(h)
				want := slices.Contains(tt.broken, promise)
				switch {
				case err == nil && want:
					t.Errorf("passed though broken: %v", promise)
				case err != nil && !want:
					t.Errorf("broken though it holds: %v", err)
				case err != nil && !errors.Is(err, promise):
					t.Errorf("error is not the promise %q: %v", promise, err)
				}
				if err != nil {
					text += err.Error() + "\n"
				}
			}
			if !strings.Contains(text, tt.example) {
				t.Errorf("no counter-example has %q:\n%s", tt.example, text)
			}
		})
	}
}

func partitionOfKey(n int32) int32 { return PartitionOf([]byte(Key(n)), testPartitions) }

func TestRewindOnlyBounds(t *testing.T) {
	p2 := partitionOfKey(2)
	r := goodRun()
	n := len(r.of(p2))
	r.replay(p2, n-8, n)
	r.replay(p2, n-3, n)
	h := r.history(t)
	tests := []struct {
		name  string
		bound Bound
		want  error
	}{
		{"as far and as often as allowed", Bound{Rewinds: 2, Rows: 8}, nil},
		{"further than allowed", Bound{Rewinds: 2, Rows: 7}, ErrRewindTooLong},
		{"more often than allowed", Bound{Rewinds: 1, Rows: 8}, ErrRewindTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := RewindOnly(h, tt.bound); !errors.Is(err, tt.want) {
				t.Errorf("RewindOnly = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestValidateJoinsAll(t *testing.T) {
	r := goodRun()
	r.remove(r.find(Row{22, 3}))
	r.records = append(r.records, r.records[0])
	h := r.history(t)
	err := Validate(h, ExactlyOnce)
	for _, want := range []error{ErrLost, ErrTwice, ErrPartitionOrder} {
		if !errors.Is(err, want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if err := Validate(h, AtLeastOnce(Bound{Rewinds: 1, Rows: 1000})); errors.Is(err, ErrTwice) ||
		!errors.Is(err, ErrLost) {
		t.Errorf("at least once must allow a repeat and see the loss: %v", err)
	}
	if err := Validate(goodRun().history(t), ExactlyOnce); err != nil {
		t.Errorf("good run: %v", err)
	}
}

func TestCounts(t *testing.T) {
	r := goodRun()
	r.remove(r.find(Row{22, 3}))
	r.replay(partitionOfKey(2), 0, 2)
	got := r.history(t).Counts()
	want := Counts{Transactions: 43, Rows: 20 + 12 + 3 + 2 + 40, RolledBack: 2, Records: 78, Missing: 1, Repeated: 2}
	if got != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestSourceContradictions: a run whose writer and ledger disagree proves nothing
// about the product, and must not look like its fault.
func TestSourceContradictions(t *testing.T) {
	one := func(o Outcome) []*Txn { return []*Txn{{ID: 1, Keys: []int32{1}, Rows: 1, Outcome: o}} }
	p := partitionOfKey(1)
	tests := []struct {
		name    string
		journal []*Txn
		ledger  []LedgerRow
		seen    []Seen
		want    string
	}{
		{"answered as committed, not in the ledger", one(Committed), nil, nil, "the source lost it"},
		{"rolled back, in the ledger", one(RolledBack), []LedgerRow{{1, p, 1}}, nil, "rolled back"},
		{"in the ledger, not in the journal", nil, []LedgerRow{{1, p, 1}}, nil, "nobody wrote"},
		{"row's partition not in the ledger", one(Committed), []LedgerRow{{1, (p + 1) % testPartitions, 1}}, nil,
			"no ledger row"},
		{"one place for two", append(one(Committed), &Txn{ID: 2, Keys: []int32{1}, Rows: 1}),
			[]LedgerRow{{1, p, 1}, {2, p, 1}}, nil, "same place"},
		{"more partitions than expected", nil, nil, []Seen{{Partition: testPartitions}}, "partition"},
		{"reader out of order", nil, nil, []Seen{{Offset: 2}, {Offset: 1}}, "offset order"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(testPartitions, tt.journal, tt.ledger, tt.seen)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New = %v, want an error with %q", err, tt.want)
			}
		})
	}
}
