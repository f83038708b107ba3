package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// TableName is a table as the configuration names it.
type TableName struct{ Database, Table string }

// String returns "database.table".
func (n TableName) String() string { return n.Database + "." + n.Table }

// Tables says which tables are outboxes. It is safe for concurrent use.
type Tables struct {
	names    []TableName
	patterns []*javaregex.Pattern
}

// Tables returns the outbox tables of a source.
func (s Source) Tables() (*Tables, error) {
	t := &Tables{}
	var errs []error
	list := s.TableList
	if s.Table != "" {
		list = append([]string{s.Table}, list...)
	}
	for _, text := range list {
		name, err := ParseTableName(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t.names = append(t.names, name)
	}
	for _, p := range s.TablePatterns {
		re, err := javaregex.CompileFold(p)
		if err != nil {
			errs = append(errs, notRegex(err))
			continue
		}
		t.patterns = append(t.patterns, re)
	}
	return t, errors.Join(errs...)
}

// Names returns the tables that were named in full, in the order given.
func (t *Tables) Names() []TableName { return t.names }

// HasPatterns reports whether other tables than Names may match.
func (t *Tables) HasPatterns() bool { return len(t.patterns) > 0 }

// Match reports whether a table is an outbox. As with Debezium's
// table.include.list the whole of "database.table" must match, without regard to
// the case of ASCII letters. The error is javaregex.ErrTooLong, with the table.
func (t *Tables) Match(database, table string) (bool, error) {
	for _, n := range t.names {
		if strings.EqualFold(n.Database, database) && strings.EqualFold(n.Table, table) {
			return true, nil
		}
	}
	matches, err := anyMatches(t.patterns, database+"."+table)
	if err != nil {
		return false, fmt.Errorf("source.table_patterns, held against %s.%s: %w", database, table, err)
	}
	return matches, nil
}

func anyMatches(patterns []*javaregex.Pattern, text string) (bool, error) {
	for _, p := range patterns {
		if ok, err := p.Match(text); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func notRegex(err error) error {
	return fmt.Errorf("not a regular expression as Java takes it: %w", err)
}

// ParseTableName reads "database.table"; a part that holds a dot is written in
// backquotes, a backquote in it twice.
func ParseTableName(text string) (TableName, error) {
	database, rest, ok := cutIdentifier(text)
	if !ok || !strings.HasPrefix(rest, ".") {
		return TableName{}, fmt.Errorf("%q is not a table; write database.table", text)
	}
	table, rest, ok := cutIdentifier(rest[1:])
	if !ok || rest != "" {
		return TableName{},
			fmt.Errorf("%q is not a table; write database.table, with backquotes around a name that holds a dot", text)
	}
	return TableName{database, table}, nil
}

func cutIdentifier(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, "`") {
		end := strings.IndexByte(text, '.')
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], end > 0
	}
	var b strings.Builder
	for text = text[1:]; ; {
		end := strings.IndexByte(text, '`')
		if end < 0 {
			return "", "", false
		}
		b.WriteString(text[:end])
		if text = text[end+1:]; !strings.HasPrefix(text, "`") {
			return b.String(), text, b.Len() > 0
		}
		b.WriteByte('`')
		text = text[1:]
	}
}

// Matcher returns whether a topic belongs to the group: its whole name matches one
// of Include and none of Exclude. Validation has refused patterns that are none. The
// error of the function is javaregex.ErrTooLong, with the group.
func (g TopicGroup) Matcher() (func(topic string) (bool, error), error) {
	compile := func(patterns []string) (out []*javaregex.Pattern, err error) {
		for _, p := range patterns {
			r, err := javaregex.Compile(p)
			if err != nil {
				return nil, fmt.Errorf("topic group %s: %q: %w", g.Name, p, notRegex(err))
			}
			out = append(out, r)
		}
		return out, nil
	}
	include, err := compile(g.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := compile(g.Exclude)
	if err != nil {
		return nil, err
	}
	return func(topic string) (bool, error) {
		in, err := anyMatches(include, topic)
		if err == nil && in {
			var out bool
			out, err = anyMatches(exclude, topic)
			in = !out
		}
		if err != nil {
			return false, fmt.Errorf("topic group %s, held against topic %s: %w", g.Name, topic, err)
		}
		return in, nil
	}, nil
}

// ColumnMatcher returns whether one of the patterns matches the whole of a column's
// "database.table.column", without regard to the case of ASCII letters. It is safe for
// concurrent use. The error of the function is javaregex.ErrTooLong, with the column.
func ColumnMatcher(patterns []string) (func(name string) (bool, error), error) {
	var list []*javaregex.Pattern
	for _, p := range patterns {
		re, err := javaregex.CompileFold(p)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", p, notRegex(err))
		}
		list = append(list, re)
	}
	return func(name string) (bool, error) {
		ok, err := anyMatches(list, name)
		if err != nil {
			return false, fmt.Errorf("columns, held against %s: %w", name, err)
		}
		return ok, nil
	}, nil
}
