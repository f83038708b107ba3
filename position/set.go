package position

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/uuid"
)

// Set is a GTID set of either flavor. MySQL sets are kept interval by interval:
// a gap is a transaction that is still to come and is never closed by a maximum.
// A MariaDB set is a position, one GTID per domain, as the server defines it.
//
// The parsing, printing and wire form are go-mysql's; its types stay inside.
// A Set is not safe for concurrent use.
type Set struct {
	flavor Flavor
	mysql  mysql.MysqlGTIDSet
	maria  map[uint32]GTID
}

// NewSet returns an empty set of the given flavor.
func NewSet(f Flavor) *Set {
	s := &Set{flavor: f}
	if f == MariaDB {
		s.maria = map[uint32]GTID{}
	} else {
		s.flavor, s.mysql = MySQL, mysql.NewMysqlGTIDSet()
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
	s.mysql = *parsed.(*mysql.MysqlGTIDSet)
	return s, nil
}

// Flavor returns the flavor that the set was made with.
func (s *Set) Flavor() Flavor { return s.flavor }

// IsEmpty reports whether the set holds no transaction.
func (s *Set) IsEmpty() bool {
	for _, tags := range s.mysql {
		for _, iv := range tags {
			if len(iv) > 0 {
				return false
			}
		}
	}
	return len(s.maria) == 0
}

// Clone returns a copy that shares nothing with s.
func (s *Set) Clone() *Set {
	c := NewSet(s.flavor)
	for sid, tags := range s.mysql {
		m := make(map[mysql.Tag]mysql.IntervalSlice, len(tags))
		for tag, iv := range tags {
			m[tag] = slices.Clone(iv)
		}
		c.mysql[sid] = m
	}
	for d, g := range s.maria {
		c.maria[d] = g
	}
	return c
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
	tags := s.mysql[g.SID]
	if tags == nil {
		tags = make(map[mysql.Tag]mysql.IntervalSlice, 1)
		s.mysql[g.SID] = tags
	}
	tag := mysql.NewTag(g.Tag)
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
	for _, iv := range s.mysql[g.SID][mysql.NewTag(g.Tag)] {
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
	for sid, tags := range s.mysql {
		for tag, iv := range tags {
			left := iv
			if o.flavor == MySQL {
				left = subtractIntervals(iv, o.mysql[sid][tag])
			}
			if len(left) == 0 {
				continue
			}
			if rest.mysql[sid] == nil {
				rest.mysql[sid] = map[mysql.Tag]mysql.IntervalSlice{}
			}
			rest.mysql[sid][tag] = slices.Clone(left)
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
	for sid, tags := range o.mysql {
		for tag, iv := range tags {
			if s.mysql[sid] == nil {
				s.mysql[sid] = map[mysql.Tag]mysql.IntervalSlice{}
			}
			s.mysql[sid][tag] = slices.Concat(s.mysql[sid][tag], iv).Normalize()
		}
	}
}

// Of returns the transactions of a MySQL set that originate on servers for which
// keep is true, as a new set.
func (s *Set) Of(keep func(source uuid.UUID) bool) *Set {
	part := NewSet(s.flavor)
	for sid, tags := range s.mysql {
		if !keep(sid) {
			continue
		}
		part.mysql[sid] = make(map[mysql.Tag]mysql.IntervalSlice, len(tags))
		for tag, iv := range tags {
			part.mysql[sid][tag] = slices.Clone(iv)
		}
	}
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
	for _, tags := range s.mysql {
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
	out := make([]uuid.UUID, 0, len(s.mysql))
	for sid := range s.mysql {
		out = append(out, sid)
	}
	slices.SortFunc(out, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// String returns the server's text of the set, sorted, without line breaks.
func (s *Set) String() string {
	if s.flavor == MySQL {
		return s.mysql.String()
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
