package position

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxPartials is how many transactions may be published in part at once. Each one
// after the first takes a change of the source, in the middle of a large transaction,
// to a server that gives others first.
const MaxPartials = 64

// Partial says how much of a transaction that is published in parts has been
// published. It counts by table and operation: of each kind, the rows come in the
// same order from every server, and also when other tables or operations are
// published than before.
type Partial struct {
	// GTID is zero when the source gives none: the transaction is then the first
	// after the position.
	GTID GTID `json:"gtid,omitzero"`
	// Rows are the rows that were published, or passed over for good.
	Rows []KindRows `json:"rows"`
	// Committed is the transaction's commit time: its fingerprint, as
	// Position.Committed is that of the last whole one. Zero when unknown.
	Committed time.Time `json:"committed,omitzero"`
}

// Kind is what rows of one transaction are counted by. It is a comparable value.
type Kind struct {
	Database string `json:"database"`
	Table    string `json:"table"`
	// Op is the operation: "insert", "update".
	Op string `json:"op"`
}

// KindRows is a number of rows of one kind, the first ones of a transaction.
type KindRows struct {
	Kind
	N uint64 `json:"n"`
}

// Of returns how many rows of kind are published.
func (p *Partial) Of(kind Kind) uint64 {
	if p == nil {
		return 0
	}
	for i := range p.Rows {
		if p.Rows[i].Kind == kind {
			return p.Rows[i].N
		}
	}
	return 0
}

// Total is how many rows are published, of all kinds.
func (p *Partial) Total() uint64 {
	var n uint64
	for i := range p.Rows {
		n += p.Rows[i].N
	}
	return n
}

// covers reports whether p has all rows of o, which is of the same transaction.
func (p *Partial) covers(o *Partial) bool {
	have := p.byKind()
	return !slices.ContainsFunc(o.Rows, func(k KindRows) bool { return have[k.Kind] < k.N })
}

// and returns p with what o has more of, which is of the same transaction.
func (p *Partial) and(o Partial) Partial {
	have := o.byKind()
	for _, k := range p.Rows {
		if have[k.Kind] < k.N {
			have[k.Kind] = k.N
		}
	}
	out := Partial{GTID: o.GTID, Committed: o.Committed, Rows: make([]KindRows, 0, len(have))}
	for _, list := range [][]KindRows{p.Rows, o.Rows} {
		for _, k := range list {
			if n, ok := have[k.Kind]; ok {
				out.Rows = append(out.Rows, KindRows{k.Kind, n})
				delete(have, k.Kind)
			}
		}
	}
	return out
}

func (p *Partial) byKind() map[Kind]uint64 {
	out := make(map[Kind]uint64, len(p.Rows))
	for _, k := range p.Rows {
		out[k.Kind] = k.N
	}
	return out
}

// PartialOf returns what is published of the transaction with a GTID, or with the
// zero value of the one that begins at p; nil when nothing is.
func (p Position) PartialOf(g GTID) *Partial {
	for i := range p.Partials {
		if p.Partials[i].GTID == g {
			return &p.Partials[i]
		}
	}
	return nil
}

// AddPartial notes what is published of a transaction whose end is still to come.
// What is known of it already only grows. It refuses more than MaxPartials, as an
// error that says what to do.
func (p *Position) AddPartial(part Partial) error {
	list := slices.Clone(p.Partials)
	i := slices.IndexFunc(list, func(o Partial) bool { return o.GTID == part.GTID })
	switch {
	case i >= 0:
		list[i] = list[i].and(part)
	case len(list) >= MaxPartials:
		return fmt.Errorf("%d transactions are published in part, and their ends have not come (%s is the oldest): "+
			"one more can't be kept; have the source give them, or set a position", len(list), list[0].GTID)
	default:
		list = append(list, part)
	}
	p.Partials = list
	return nil
}

// dropWhole forgets those of the transactions published in part that are whole by
// now. Another server may give others before, and what is published must not be
// forgotten meanwhile. Files have one order only.
func (p *Position) dropWhole() {
	whole := func(o Partial) bool { return p.Set == nil || o.GTID.IsZero() || p.Set.Has(o.GTID) }
	if !slices.ContainsFunc(p.Partials, whole) {
		return
	}
	p.Partials = slices.DeleteFunc(slices.Clone(p.Partials), whole)
	if len(p.Partials) == 0 {
		p.Partials = nil
	}
}

// partialsCover reports whether what is published in part at o, whose place in the
// binlog p covers, is published at p.
func (p Position) partialsCover(o Position) bool {
	for i := range o.Partials {
		theirs := &o.Partials[i]
		if p.Set != nil && p.Set.Has(theirs.GTID) {
			continue
		}
		if ours := p.PartialOf(theirs.GTID); ours == nil || !ours.covers(theirs) {
			return false
		}
	}
	return true
}

// unfinished is what is published in part, for people.
func (p Position) unfinished() string {
	var b strings.Builder
	for i := range p.Partials {
		part := &p.Partials[i]
		if part.GTID.IsZero() {
			fmt.Fprintf(&b, " and %d rows of the next transaction", part.Total())
		} else {
			fmt.Fprintf(&b, " and %d rows of %s", part.Total(), part.GTID)
		}
	}
	return b.String()
}
