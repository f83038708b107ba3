package canal

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// logged refuses a server whose binlog can't hold what is written to the outbox tables,
// though it may have the tables with all their rows: nothing would ever come, and
// nothing would be wrong.
func (s *session) logged(server *Server, cfg Config) error {
	if err := s.logsReplicated(server, cfg); err != nil {
		return err
	}
	r, err := s.statusOfBinlog(server)
	if err != nil || r.Resultset == nil || r.RowNumber() == 0 {
		return nil //nolint:nilerr // who may not see it is not told, and what else is wrong shows soon
	}
	do, ignore := list(text(r, 0, 2)), list(text(r, 0, 3))
	if len(do)+len(ignore) == 0 {
		return nil
	}
	names, err := s.outboxes(cfg)
	for _, n := range names {
		in := func(db string) bool { return server.same(db, n.Database) }
		if len(do) > 0 && !slices.ContainsFunc(do, in) || slices.ContainsFunc(ignore, in) {
			e := newError(WrongMode, nil, "outbox table %s is kept out of the server's binlog by binlog_do_db or "+
				"binlog_ignore_db: start the server without", n)
			e.Table = n.String()
			return e
		}
	}
	return err
}

// list splits what a server shows of a filter.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// same compares names of databases as the server does.
func (s *Server) same(a, b string) bool { return a == b || s.foldsNames && strings.EqualFold(a, b) }

// outboxes are the outbox tables: those that are configured, and those that are there.
func (s *session) outboxes(cfg Config) ([]schema.Name, error) {
	names := slices.Clone(cfg.Tables.List)
	r, err := s.inUTF8("its tables", tablesQuery)
	if err != nil {
		return names, err
	}
	for i := range r.RowNumber() {
		n := schema.Name{Database: text(r, i, 0), Table: text(r, i, 1)}
		matches, err := cfg.Tables.matches(n)
		if err != nil {
			return nil, err
		}
		if matches && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, nil
}

// logsReplicated refuses a replica whose binlog lacks what it replicates.
func (s *session) logsReplicated(server *Server, cfg Config) error {
	off := isOff(server.LogReplicated)
	if off && server.galera {
		return newError(WrongMode, nil, "the server is a member of a Galera cluster with log_slave_updates=OFF, so its "+
			"binlog lacks what is written at the other members: start it with --log-slave-updates")
	}
	if !off && server.ReadOnly == "" {
		return nil
	}
	r, err := s.channels(server)
	var e *Error
	switch {
	case errors.As(err, &e) && e.Kind == AccessDenied && off && server.ReadOnly != "":
		return newError(AccessDenied, err, "the server takes no writes (%s=ON) and does not log what it replicates "+
			"(log_slave_updates=OFF), and user %s may not see whether it is a replica: "+
			"read from its source, or start it with --log-slave-updates, or GRANT the right to see it (REPLICATION CLIENT, on "+
			"MariaDB SLAVE MONITOR)", server.ReadOnly, cfg.User)
	case errors.As(err, &e) && e.Kind == AccessDenied:
		return nil // a right that is of use here only
	case err != nil:
		return err
	}
	replicates := false
	for i := range r.RowNumber() {
		running, _ := r.GetStringByName(i, "Replica_SQL_Running")
		if running == "" {
			running, _ = r.GetStringByName(i, "Slave_SQL_Running")
		}
		replicates = replicates || running == "Yes" || server.ReadOnly != ""
	}
	switch {
	case !replicates:
		return nil
	case off:
		return newError(WrongMode, nil, "the server is a replica that does not log what it replicates "+
			"(log_replica_updates, log_slave_updates, is OFF), so its binlog never holds what is written at its source: "+
			"read from the source, or start the replica with --log-slave-updates")
	case server.ReadOnly == "":
		return nil // what is written here is in its binlog
	}
	return s.replicates(server, cfg, r)
}

func isOff(v string) bool { return v == "0" || strings.EqualFold(v, "OFF") }

// channels are the sources that the server replicates from.
func (s *session) channels(server *Server) (*mysql.Result, error) {
	statement := "SHOW REPLICA STATUS"
	switch {
	case s.maria:
		statement = "SHOW ALL SLAVES STATUS"
	case olderThan(server.Version, 8, 1): // 8.0.22 has both, before it had the old one only
		statement = "SHOW SLAVE STATUS"
	}
	return s.query("what it replicates", statement)
}

// replicates refuses a replica that leaves an outbox table out, from all its sources.
func (s *session) replicates(server *Server, cfg Config, r *mysql.Result) error {
	var filters []replicaFilter
	for i := range r.RowNumber() {
		get := func(name string) []string {
			v, _ := r.GetStringByName(i, name)
			return list(strings.Clone(v))
		}
		f := replicaFilter{
			same: server.same, doDB: get("Replicate_Do_DB"), ignoreDB: get("Replicate_Ignore_DB"),
			do: get("Replicate_Do_Table"), ignore: get("Replicate_Ignore_Table"),
			wildDo: get("Replicate_Wild_Do_Table"), wildIgnore: get("Replicate_Wild_Ignore_Table"),
		}
		if f.isEmpty() {
			return nil
		}
		filters = append(filters, f)
	}
	names, err := s.outboxes(cfg)
	for _, n := range names {
		if !slices.ContainsFunc(filters, func(f replicaFilter) bool { return f.lets(n) }) {
			e := newError(WrongMode, nil, "the server is a replica that leaves out outbox table %s (replicate_do_db and the "+
				"like), so nothing of it is in its binlog: read from its source, or change the filter", n)
			e.Table = n.String()
			return e
		}
	}
	return err
}

// replicaFilter is what a replica takes of one source.
type replicaFilter struct {
	same                                           func(a, b string) bool
	doDB, ignoreDB, do, ignore, wildDo, wildIgnore []string
}

func (f *replicaFilter) isEmpty() bool {
	return len(f.doDB)+len(f.ignoreDB)+len(f.do)+len(f.ignore)+len(f.wildDo)+len(f.wildIgnore) == 0
}

// lets goes through the filters in the server's order, for changes of rows.
func (f *replicaFilter) lets(n schema.Name) bool {
	db := func(d string) bool { return f.same(d, n.Database) }
	table := func(t string) bool { return f.same(t, n.String()) }
	wild := func(p string) bool { return like(p, n.String()) }
	switch {
	case len(f.doDB) > 0 && !slices.ContainsFunc(f.doDB, db), len(f.doDB) == 0 && slices.ContainsFunc(f.ignoreDB, db):
		return false
	case slices.ContainsFunc(f.do, table):
		return true
	case slices.ContainsFunc(f.ignore, table):
		return false
	case slices.ContainsFunc(f.wildDo, wild):
		return true
	case slices.ContainsFunc(f.wildIgnore, wild):
		return false
	}
	return len(f.do)+len(f.wildDo) == 0
}

// like is SQL's LIKE with a backslash as the escape.
func like(pattern, s string) bool {
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			for j := len(s); j >= 0; j-- {
				if like(pattern[i+1:], s[j:]) {
					return true
				}
			}
			return false
		case s == "":
			return false
		case c == '\\' && i+1 < len(pattern):
			i++
			if pattern[i] != s[0] {
				return false
			}
		case c != '_' && c != s[0]:
			return false
		}
		s = s[1:]
	}
	return s == ""
}
