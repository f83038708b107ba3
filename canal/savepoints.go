package canal

import (
	linked "container/list"
	"strings"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

const (
	// maxSavepoints bounds the memory for the savepoints of a transaction: half a million
	// of usual names.
	maxSavepoints = 128 << 20
	// savepointBytes is what one takes beside its name.
	savepointBytes = 240
)

// savepoints are those of a transaction, in the order in which they were set. Setting one
// and rolling back to it take no longer when there are many. RELEASE SAVEPOINT is not
// logged, so that a transaction may have very many.
type savepoints struct {
	byName map[string]*linked.Element
	order  linked.List // of savepoint
	bytes  int
}

type savepoint struct {
	name  string // folded
	hold  holdCommit
	tally tallyCommit
	fault error
}

// set appends a savepoint; one of the same name moves. It reports whether there is room.
func (s *savepoints) set(sp savepoint) bool {
	if s.byName == nil {
		s.byName = map[string]*linked.Element{}
	}
	if e := s.byName[sp.name]; e != nil {
		s.drop(e)
	}
	s.byName[sp.name] = s.order.PushBack(sp)
	s.bytes += savepointBytes + len(sp.name)
	return s.bytes <= maxSavepoints
}

func (s *savepoints) drop(e *linked.Element) {
	sp := s.order.Remove(e).(savepoint)
	delete(s.byName, sp.name)
	s.bytes -= savepointBytes + len(sp.name)
}

// backTo drops all that were set after one; known is false when there is no such one.
func (s *savepoints) backTo(name string) (sp savepoint, known bool) {
	at := s.byName[name]
	if at == nil {
		return sp, false
	}
	for s.order.Back() != at {
		s.drop(s.order.Back())
	}
	return at.Value.(savepoint), true
}

func (w *eventHandler) savepoint(name string) error {
	sp := savepoint{name: foldName(name), hold: w.hold.commitPos(), tally: w.tally.commitPos(), fault: w.group.fault}
	if !w.group.savepoints.set(sp) {
		return w.fail(TooLarge, nil, "a transaction has more savepoints than %d MiB hold", maxSavepoints>>20)
	}
	return nil
}

// rollbackTo drops the rows since a savepoint. The server logs it only when the
// transaction can't simply be cut back in its own cache.
func (w *eventHandler) rollbackTo(name string) error {
	sp, known := w.group.savepoints.backTo(foldName(name))
	if !known {
		return w.fail(Undecodable, nil, "a transaction is rolled back to a savepoint that it has not set")
	}
	w.group.fault = sp.fault
	w.tally.rollBack(sp.tally)
	if err := w.hold.cut(sp.hold); err != nil {
		return w.fail(SpoolFailed, err, "dropping the rows since a savepoint")
	}
	return nil
}

// foldName makes savepoint names comparable as the server compares them
// (utf8mb3_general_ci): without case and accents.
func foldName(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if !ascii {
		if t, _, err := transform.String(transform.Chain(norm.NFD, runes.Remove(runes.In(unicode.Mn))), s); err == nil {
			s = t
		}
	}
	return strings.ToUpper(s)
}
