package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"
)

// TableName is a table as the configuration names it.
type TableName struct{ Database, Table string }

// String returns "database.table".
func (n TableName) String() string { return n.Database + "." + n.Table }

// Tables says which tables are outboxes. It is safe for concurrent use.
type Tables struct {
	names    []TableName
	patterns []*regexp2.Regexp
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
		re, err := compileWhole(p, regexp2.IgnoreCase)
		if err != nil {
			errs = append(errs, err)
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
// case.
func (t *Tables) Match(database, table string) bool {
	for _, n := range t.names {
		if strings.EqualFold(n.Database, database) && strings.EqualFold(n.Table, table) {
			return true
		}
	}
	for _, p := range t.patterns {
		// The error is that of a time limit, and none is set.
		if ok, _ := p.MatchString(database + "." + table); ok {
			return true
		}
	}
	return false
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
		return TableName{}, fmt.Errorf("%q is not a table; write database.table, with backquotes around a name that holds a dot", text)
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

// compileWhole compiles a pattern in Java's dialect that must match a whole text.
func compileWhole(pattern string, options regexp2.RegexOptions) (*regexp2.Regexp, error) {
	// Alone first, so that an unbalanced ")" can't hide in the brackets.
	if _, err := regexp2.Compile(pattern, options); err != nil {
		return nil, fmt.Errorf("not a regular expression: %w", err)
	}
	return regexp2.Compile(`\A(?:`+pattern+`)\z`, options)
}

// Matcher returns whether a topic belongs to the group: its whole name matches one
// of Include and none of Exclude. Validation has refused patterns that are none.
func (g TopicGroup) Matcher() (func(topic string) bool, error) {
	compile := func(patterns []string) (out []*regexp2.Regexp, err error) {
		for _, p := range patterns {
			r, err := compileWhole(p, regexp2.None)
			if err != nil {
				return nil, fmt.Errorf("topic group %s: %q: %w", g.Name, p, err)
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
	matches := func(list []*regexp2.Regexp, topic string) bool {
		return slices.ContainsFunc(list, func(r *regexp2.Regexp) bool {
			ok, err := r.MatchString(topic)
			return ok && err == nil
		})
	}
	return func(topic string) bool { return matches(include, topic) && !matches(exclude, topic) }, nil
}
