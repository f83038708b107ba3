package position

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
)

// Set is a GTID set of either flavor. MySQL sets are kept interval by interval:
// a gap is a transaction that is still to come and is never closed by a maximum.
// A MariaDB set is a position, one GTID per domain, as the server defines it.
//
// Copies share what has not changed since: to clone a set of hundreds of servers, of
// which one or two write, or to compare it with its clone, costs no more than theirs.
//
// The parsing and printing are go-mysql's; its types stay inside. A Set may be read
// and cloned by several goroutines, and changed by one that is then alone with it.
type Set struct {
	flavor Flavor
	// shared is never changed, and may be that of other sets. own has the servers
	// that were changed since, and takes their place in shared.
	shared *mysql.MysqlGTIDSet // nil when empty
	own    map[uuid.UUID]*serverSet
	maria  map[uint32]GTID
}

// serverSet is what a set has of one server. After a clone both sets hold the same, and
// whoever changes it makes a copy first.
type serverSet struct {
	tags   intervals
	shared atomic.Bool
}

// intervals are a server's, by tag.
type intervals = map[mysql.Tag]mysql.IntervalSlice

// NewSet returns an empty set of the given flavor.
func NewSet(f Flavor) *Set {
	s := &Set{flavor: f}
	if f == MariaDB {
		s.maria = map[uint32]GTID{}
	} else {
		s.flavor = MySQL
	}
	return s
}

// ParseSet reads a server's text of a GTID set (gtid_executed, gtid_purged;
// gtid_binlog_pos on MariaDB). Line breaks and blanks are allowed, an empty text
// gives an empty set.
func ParseSet(f Flavor, text string) (*Set, error) {
	text = strings.Join(strings.Fields(text), "")
	s := NewSet(f)
	if text == "" {
		return s, nil
	}
	if f == MariaDB {
		for _, part := range strings.Split(text, ",") {
			g, err := ParseGTID(part)
			if err != nil || g.Flavor() != MariaDB {
				return nil, fmt.Errorf("parsing MariaDB GTID position %q: want domain-server-number, comma separated", text)
			}
			if old, ok := s.maria[g.Domain]; ok && old.Seq > g.Seq {
				continue
			}
			s.maria[g.Domain] = g
		}
		return s, nil
	}
	parsed, err := mysql.ParseMysqlGTIDSet(text)
	if err != nil {
		return nil, fmt.Errorf("parsing GTID set %q: %w", text, err)
	}
	s.shared = parsed.(*mysql.MysqlGTIDSet)
	return s, nil
}

// all yields the servers of a MySQL set. What it yields is read only.
func (s *Set) all() iter.Seq2[uuid.UUID, intervals] {
	return func(yield func(uuid.UUID, intervals) bool) {
		for sid, own := range s.own {
			if !yield(sid, own.tags) {
				return
			}
		}
		if s.shared == nil {
			return
		}
		for sid, tags := range *s.shared {
			if _, changed := s.own[sid]; !changed && !yield(sid, tags) {
				return
			}
		}
	}
}

// beside yields the servers of a MySQL set that may differ from o's: of sets that share,
// only those that were changed. What it yields is read only.
func (s *Set) beside(o *Set) iter.Seq2[uuid.UUID, intervals] {
	if s.shared == nil || s.shared != o.shared {
		return s.all()
	}
	return func(yield func(uuid.UUID, intervals) bool) {
		for sid, own := range s.own {
			if !yield(sid, own.tags) {
				return
			}
		}
		for sid := range o.own {
			if _, changed := s.own[sid]; !changed && !yield(sid, s.of(sid)) {
				return
			}
		}
	}
}

// of returns a server's intervals, read only.
func (s *Set) of(sid uuid.UUID) intervals {
	if own, ok := s.own[sid]; ok {
		return own.tags
	}
	if s.shared == nil {
		return nil
	}
	return (*s.shared)[sid]
}

// change returns a server's intervals, which the caller may change.
func (s *Set) change(sid uuid.UUID) intervals {
	own, ok := s.own[sid]
	if ok && !own.shared.Load() {
		return own.tags
	}
	// else each clone would copy them
	if !ok && len(s.own) >= 8 && (s.shared == nil || len(s.own) >= 8+len(*s.shared)/16) {
		all := mysql.MysqlGTIDSet(maps.Collect(s.all()))
		s.shared, s.own = &all, nil
	}
	if s.own == nil {
		s.own = map[uuid.UUID]*serverSet{}
	}
	own = &serverSet{tags: cloneIntervals(s.of(sid))}
	s.own[sid] = own
	return own.tags
}

func cloneIntervals(tags intervals) intervals {
	c := make(intervals, max(1, len(tags)))
	for tag, iv := range tags {
		c[tag] = slices.Clone(iv)
	}
	return c
}

// Flavor returns the flavor that the set was made with.
func (s *Set) Flavor() Flavor { return s.flavor }

// IsEmpty reports whether the set holds no transaction.
func (s *Set) IsEmpty() bool {
	for _, tags := range s.all() {
		for _, iv := range tags {
			if len(iv) > 0 {
				return false
			}
		}
	}
	return len(s.maria) == 0
}

// Clone returns a copy: what is done to one does not show in the other.
func (s *Set) Clone() *Set {
	for _, own := range s.own {
		own.shared.Store(true)
	}
	return &Set{flavor: s.flavor, shared: s.shared, own: maps.Clone(s.own), maria: maps.Clone(s.maria)}
}

// Add puts one transaction into the set.
func (s *Set) Add(g GTID) { s.AddRange(g, g.Seq) }

// AddRange puts the transactions first..g.Seq of g's sequence into the set. In
// the MariaDB flavor the domain's position moves to g, whatever it was: the
// binlog's order is the domain's order. GTIDs of the other flavor are ignored.
func (s *Set) AddRange(g GTID, first uint64) {
	if g.IsZero() || g.Flavor() != s.flavor {
		return
	}
	if s.flavor == MariaDB {
		s.maria[g.Domain] = g
		return
	}
	tags, tag := s.change(g.SID), mysql.NewTag(g.Tag)
	iv := tags[tag]
	// The usual case by far: the sequence goes on where its last interval ends.
	if n := len(iv); n > 0 && iv[n-1].Stop == int64(first) {
		iv[n-1].Stop = int64(g.Seq) + 1
		return
	}
	tags[tag] = append(iv, mysql.Interval{Start: int64(first), Stop: int64(g.Seq) + 1}).Normalize()
}

// Has reports whether the set holds g. For MariaDB: whether g's domain has come
// as far as g.
func (s *Set) Has(g GTID) bool {
	if g.IsZero() || g.Flavor() != s.flavor {
		return false
	}
	if s.flavor == MariaDB {
		have, ok := s.maria[g.Domain]
		return ok && have.Seq >= g.Seq
	}
	for _, iv := range s.of(g.SID)[mysql.NewTag(g.Tag)] {
		if int64(g.Seq) >= iv.Start && int64(g.Seq) < iv.Stop {
			return true
		}
	}
	return false
}

// Contains reports whether every transaction of o is in s.
func (s *Set) Contains(o *Set) bool { return o.Subtract(s).IsEmpty() }

// Equal reports whether both sets hold the same transactions.
func (s *Set) Equal(o *Set) bool { return s.Contains(o) && o.Contains(s) }

// Subtract returns the transactions of s that are not in o, as a new set. For
// MariaDB these are the domains in which s has come further than o.
func (s *Set) Subtract(o *Set) *Set {
	rest := NewSet(s.flavor)
	for d, g := range s.maria {
		if !o.Has(g) {
			rest.maria[d] = g
		}
	}
	for sid, tags := range s.beside(o) {
		var theirs intervals
		if o.flavor == MySQL {
			theirs = o.of(sid)
		}
		for tag, iv := range tags {
			if left := subtractIntervals(iv, theirs[tag]); len(left) > 0 {
				rest.change(sid)[tag] = left
			}
		}
	}
	return rest
}

// subtractIntervals returns a minus b; both are sorted and free of overlaps, as
// Normalize leaves them.
func subtractIntervals(a, b mysql.IntervalSlice) mysql.IntervalSlice {
	var out mysql.IntervalSlice
	j := 0
	for _, iv := range a {
		start := iv.Start
		for ; j < len(b) && b[j].Stop <= start; j++ {
		}
		for k := j; k < len(b) && b[k].Start < iv.Stop; k++ {
			if b[k].Start > start {
				out = append(out, mysql.Interval{Start: start, Stop: b[k].Start})
			}
			start = max(start, b[k].Stop)
		}
		if start < iv.Stop {
			out = append(out, mysql.Interval{Start: start, Stop: iv.Stop})
		}
	}
	return out
}

// AddSet puts all transactions of o into s. On MariaDB a domain takes o's place
// where that is further. Sets of the other flavor are ignored.
func (s *Set) AddSet(o *Set) {
	if o.flavor != s.flavor {
		return
	}
	for d, g := range o.maria {
		if have, ok := s.maria[d]; !ok || have.Seq < g.Seq {
			s.maria[d] = g
		}
	}
	for sid, tags := range o.all() {
		ours := s.change(sid)
		for tag, iv := range tags {
			ours[tag] = slices.Concat(ours[tag], iv).Normalize()
		}
	}
}

// Of returns the transactions of a MySQL set that originate on servers for which
// keep is true, as a new set.
func (s *Set) Of(keep func(source uuid.UUID) bool) *Set {
	part := NewSet(s.flavor)
	of := mysql.NewMysqlGTIDSet()
	for sid, tags := range s.all() {
		if keep(sid) {
			of[sid] = cloneIntervals(tags)
		}
	}
	part.shared = &of
	return part
}

// Intersect returns the transactions that are in both MySQL sets, as a new set.
func (s *Set) Intersect(o *Set) *Set { return s.Subtract(s.Subtract(o)) }

// Remove takes one transaction out of a MySQL set; on MariaDB the domain's
// position moves to the number before g, if it stands at g.
func (s *Set) Remove(g GTID) {
	if s.flavor == MariaDB {
		if have, ok := s.maria[g.Domain]; ok && have.Seq == g.Seq {
			if g.Seq == 1 {
				delete(s.maria, g.Domain)
				return
			}
			have.Seq--
			s.maria[g.Domain] = have
		}
		return
	}
	one := NewSet(MySQL)
	one.Add(g)
	*s = *s.Subtract(one)
}

// Count returns the number of transactions in a MySQL set, and the sum of the
// domains' numbers in a MariaDB one.
func (s *Set) Count() uint64 {
	var n uint64
	for _, g := range s.maria {
		n += g.Seq
	}
	for _, tags := range s.all() {
		for _, iv := range tags {
			for _, i := range iv {
				n += uint64(i.Stop - i.Start)
			}
		}
	}
	return n
}

// Beyond counts the transactions of s that are not in o. On MariaDB, where numbers
// may be left out, it is how far the domains' numbers are ahead.
func (s *Set) Beyond(o *Set) uint64 {
	rest := s.Subtract(o)
	n := rest.Count()
	for d := range rest.maria {
		n -= min(o.maria[d].Seq, n)
	}
	return n
}

// Sources returns the server UUIDs of a MySQL set, sorted.
func (s *Set) Sources() []uuid.UUID {
	var out []uuid.UUID
	for sid := range s.all() {
		out = append(out, sid)
	}
	slices.SortFunc(out, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// String returns the server's text of the set, sorted, without line breaks.
func (s *Set) String() string {
	if s.flavor == MySQL {
		all := mysql.MysqlGTIDSet(maps.Collect(s.all()))
		return all.String()
	}
	gs := make([]GTID, 0, len(s.maria))
	for _, g := range s.maria {
		gs = append(gs, g)
	}
	slices.SortFunc(gs, func(a, b GTID) int { return int(int64(a.Domain) - int64(b.Domain)) })
	parts := make([]string, len(gs))
	for i, g := range gs {
		parts[i] = g.String()
	}
	return strings.Join(parts, ",")
}

// MarshalText writes "flavor/set", so that a stored set can be read without
// knowing what source it came from.
func (s *Set) MarshalText() ([]byte, error) {
	return []byte(string(s.flavor) + "/" + s.String()), nil
}

// UnmarshalText is the inverse of MarshalText.
func (s *Set) UnmarshalText(b []byte) error {
	flavor, text, ok := strings.Cut(string(b), "/")
	if !ok || Flavor(flavor) != MySQL && Flavor(flavor) != MariaDB {
		return fmt.Errorf("stored GTID set %q does not begin with its flavor", b)
	}
	set, err := ParseSet(Flavor(flavor), text)
	if err != nil {
		return err
	}
	*s = *set
	return nil
}
