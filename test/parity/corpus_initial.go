package parity

import (
	"fmt"
	"slices"
	"strings"
)

// initialCases are rows that stand in the tables before the connector starts: those of
// the cases of types, JSON documents and character sets, and some whose rows are cut
// by the start.
func initialCases() []Case {
	var out []Case
	for _, c := range append(append(typeCases(), jsonCases()...), charsetCases()...) {
		if c.Refused+c.Taken != "" || c.Alone || c.FullMetadata || !initialForm(c.Name) {
			continue
		}
		in := c.initial()
		if c.Group == "floats" {
			in.Differs = "initial-floats"
		}
		out = append(out, in)
	}
	out = append(out, Case{
		Group: "initial", Name: "rows before and after the start", Setup: []string{outbox("JSON"), user(1, `'{"a": 1}'`),
			user(0, `'{"b": [1, 2]}'`)},
		Do: []string{user(2, `'{"a": 1}'`), "DELETE FROM outbox", user(3, "NULL")}, Config: conf("snapshot.mode", "initial"),
	}, Case{
		Group: "initial", Name: "snapshot.mode absent", Setup: []string{outbox("TEXT"), user(0, "'x'")},
		Do: []string{user(1, "'y'")}, Config: conf("snapshot.mode", Unset),
	}, Case{
		Group: "initial", Name: "an empty table", Setup: []string{outbox("TEXT")}, Do: []string{user(1, "'y'")},
		Config: conf("snapshot.mode", "initial"),
	}, Case{
		Group: "initial", Name: "a key of two columns, in its order",
		Setup: []string{"CREATE TABLE outbox (region VARCHAR(10) NOT NULL, id INT NOT NULL, aggregatetype VARCHAR(20) NOT " +
			"NULL, aggregateid VARCHAR(20) NOT NULL, payload TEXT, PRIMARY KEY (region, id))",
			"INSERT INTO outbox VALUES ('b', 1, 'User', 'k', 'b1'), ('a', 2, 'User', 'k', 'a2'), ('B', 0, 'User', 'k', 'B0'), " +
				"('\u00e4', 1, 'User', 'k', '\u00e41'), ('a', -1, 'User', 'k', 'a-1')"},
		Do: []string{"INSERT INTO outbox VALUES ('a', 0, 'User', 'k', 'a0')"}, Config: conf("snapshot.mode", "initial"),
	}, Case{
		Group: "initial", Name: "headers, timestamp and partition from columns",
		Setup: []string{outbox("TEXT", "at DATETIME(6)", "p INT"),
			insert(uuid(0), "User", "k", "t", "'x', '2024-02-29 12:34:56.789', 1"),
			insert(uuid(1), "User", "k", "t", "'y', NULL, NULL")},
		Do: []string{insert(uuid(2), "User", "k", "t", "'z', '2024-02-29 12:34:56.789', 2")},
		Config: merge(conf("snapshot.mode", "initial", "topic.creation.default.partitions", "3",
			"topic.creation.default.replication.factor", "1"),
			placing("type:header:kind,p:partition"), smt("table.field.event.timestamp", "at")),
	})
	return out
}

// initialForm leaves out the cases that differ from others in the form of headers only.
func initialForm(name string) bool { return !strings.HasSuffix(name, headerForm().name) }

// initial is the case with all its rows but the last before the start. Tables get names whose order
// is that in which they are listed: Debezium reads them as listed, we by their names.
func (c Case) initial() Case {
	last := len(c.Do) - 1
	c.Setup = append(append([]string{}, c.Setup...), c.Do[:last]...)
	settings := slices.DeleteFunc(slices.Clone(c.Do[:last]), func(sql string) bool {
		return !strings.HasPrefix(sql,
			"SET ")
	})
	c.Do = append(settings, c.Do[last])
	c.Name = c.Group + ": " + c.Name
	c.Group = "initial"
	c.Config = merge(c.Config, conf("snapshot.mode", "initial"))
	for i, old := range c.Tables {
		name := fmt.Sprintf("t%02d_%s", i, strings.TrimPrefix(old, "o"))
		for _, list := range [][]string{c.Setup, c.Do} {
			for j := range list {
				for _, verb := range []string{"CREATE TABLE ", "INSERT INTO "} {
					if rest, ok := strings.CutPrefix(list[j], verb+old+" "); ok {
						list[j] = verb + name + " " + rest
					}
				}
			}
		}
		c.Tables = append(append([]string{}, c.Tables[:i]...), append([]string{name}, c.Tables[i+1:]...)...)
	}
	return c
}
