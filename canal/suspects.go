package canal

import (
	"strings"
	"unicode"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// definitions are what may write one table when another is written or a function is
// called: each row is a name, what bears it, and its text, NULL where the user may not see
// it. A trigger bears the name of its table.
var definitions = []string{
	"SELECT TABLE_NAME, 'view', VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA NOT IN ('sys', 'mysql')",
	"SELECT ROUTINE_NAME, LOWER(ROUTINE_TYPE), ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA " +
		"NOT IN ('sys', 'mysql')",
	"SELECT EVENT_OBJECT_TABLE, CONCAT('trigger ', TRIGGER_NAME, ' of table'), ACTION_STATEMENT FROM " +
		"information_schema.TRIGGERS WHERE TRIGGER_SCHEMA NOT IN ('sys', 'mysql')",
}

// suspects are the names, in lower case, whose use in a statement may write an outbox
// table though the statement does not name one: views of it, tables with triggers and
// functions that mention it, and what mentions those. The value says what it is.
// Databases are not told apart, and reading counts as writing: it is better to stop once
// too often.
func (s *session) suspects(cfg Config) (map[string]string, error) {
	outboxes, err := s.outboxes(cfg)
	if err != nil {
		return nil, err
	}
	type definition struct {
		name, what string
		mentions   []string
	}
	var all []definition
	found := map[string]string{}
	for _, sql := range definitions {
		r, err := s.query("its views, triggers and functions", sql)
		if err != nil {
			return nil, err
		}
		for i := range r.RowNumber() {
			d := definition{name: strings.ToLower(text(r, i, 0)), what: text(r, i, 1) + " " + text(r, i, 0)}
			if body := text(r, i, 2); body != "" {
				d.mentions = words(body)
			} else {
				found[d.name] = d.what + ", whose definition the user may not see"
			}
			all = append(all, d)
		}
	}
	for _, n := range outboxes {
		found[strings.ToLower(n.Table)] = ""
	}
	for grown := true; grown; {
		grown = false
		for _, d := range all {
			if _, known := found[d.name]; known {
				continue
			}
			for _, word := range d.mentions {
				if _, is := found[word]; is {
					found[d.name], grown = d.what, true
					break
				}
			}
		}
	}
	return found, nil
}

// words are the names that a text may hold, in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$'
	})
}

// indirectly notes a statement that wrote other tables, and by that maybe an outbox table.
func (w *eventHandler) indirectly(s *schema.Statement) error {
	if w.askSuspects == nil || w.group.fault != nil || w.group.pass != handOn || w.skipTo > 0 {
		return nil //nolint:nilerr // the group's fault is told at the commit
	}
	if w.suspects == nil {
		var err error
		if w.suspects, err = w.askSuspects(); err != nil {
			return w.fail(Disconnected, err, "asking for views, triggers and functions")
		}
	}
	for _, name := range s.Tables {
		w.suspect(s, name.Table)
	}
	for _, name := range s.Calls {
		w.suspect(s, name)
	}
	return nil
}

func (w *eventHandler) suspect(s *schema.Statement, name string) {
	what := w.suspects[strings.ToLower(name)]
	if what == "" || w.group.fault != nil || s.Deletes && strings.HasPrefix(what, "view ") {
		return
	}
	w.group.fault = w.fail(StatementFormat, nil,
		"a statement in statement format used %s, which may have written an outbox table: the binlog would hold no rows of "+
			"that to publish. "+
			"The session has binlog_format STATEMENT or MIXED; write with binlog_format=ROW, then set a position behind this "+
			"transaction, with what it wrote, if anything, published by other means", what)
}
