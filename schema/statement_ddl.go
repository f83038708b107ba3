package schema

import "unicode/utf8"

func validName(n Name) bool { return utf8.ValidString(n.Database) && utf8.ValidString(n.Table) }

// ddl reads on behind the verb.
func (s *scanner) ddl(verb token) {
	switch {
	case verb.is("RENAME"):
		s.rename()
	case verb.is("TRUNCATE"):
		s.out.Removes = true
		s.skip("TABLE")
		s.table()
	case verb.isAny("OPTIMIZE", "REPAIR", "ANALYZE"):
		s.skip("NO_WRITE_TO_BINLOG", "LOCAL")
		if s.accept("TABLE", "TABLES") {
			s.tables()
		}
	case verb.is("IMPORT"): // names files, not tables
		s.out.Everything = true
	default:
		s.object(verb)
	}
}

// object finds out what CREATE, ALTER or DROP is about.
func (s *scanner) object(verb token) {
	// CREATE alone takes no other's place, and IF NOT EXISTS may change nothing.
	replaces := verb.is("DROP")
	for s.cur.kind != tokenEnd {
		what := s.cur
		s.advance()
		switch {
		case what.is("TEMPORARY"):
			replaces = false
		case what.is("REPLACE"):
			replaces = true
		case what.isAny("OR", "ONLINE", "OFFLINE", "IGNORE", "UNIQUE", "FULLTEXT",
			"AGGREGATE", "SQL", "ALGORITHM", "UNDEFINED", "MERGE", "TEMPTABLE",
			"PUBLIC", "JSON", "RELATIONAL", "DUALITY", "EXTERNAL", "VECTOR"), what.isPunct('='):
			// Words that may stand before the kind of object.
		case what.is("SECURITY"):
			s.skip("DEFINER", "INVOKER")
		case what.is("SPATIAL"):
			if s.cur.is("REFERENCE") { // SPATIAL REFERENCE SYSTEM
				return
			}
		case what.is("DEFINER"):
			s.definer()
		case what.isAny("TABLE", "TABLES"):
			s.out.AltersColumns, s.out.Removes = replaces, replaces
			s.tableDDL(verb)
			return
		case what.isAny("DATABASE", "SCHEMA"):
			s.out.AltersColumns, s.out.Removes = replaces, replaces
			s.database()
			return
		case what.is("INDEX"):
			s.index()
			return
		case what.isAny("VIEW", "SEQUENCE"):
			s.skip("IF", "NOT", "EXISTS")
			s.tables()
			return
		case what.isAny("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "USER", "ROLE", "SERVER",
			"TABLESPACE", "LOGFILE", "UNDO", "RESOURCE", "INSTANCE", "LIBRARY", "CATALOG"):
			// They change no table; what stands in a body does not happen now.
			return
		default:
			s.out.Everything = true
			return
		}
	}
}

// definer passes over = user@host, = CURRENT_USER() and the like.
func (s *scanner) definer() {
	if s.cur.isPunct('=') {
		s.advance()
	}
	s.advance() // user
	for s.cur.isPunct('(') || s.cur.isPunct(')') {
		s.advance()
	}
	if s.cur.isPunct('@') {
		s.advance()
		s.advance() // host
		for s.cur.isPunct('.') || s.cur.isPunct('-') || s.cur.isPunct('%') {
			s.advance()
			s.advance()
		}
	}
}

func (s *scanner) tableDDL(verb token) {
	s.skip("IF", "NOT", "EXISTS")
	switch {
	case verb.is("DROP"):
		s.tables()
	case verb.is("CREATE"):
		s.table()
		s.createTable()
	default:
		s.table()
		s.alterTable()
	}
}

// createTable looks for what makes CREATE TABLE write rows.
func (s *scanner) createTable() {
	for s.cur.kind != tokenEnd {
		word := s.cur
		s.advance()
		switch {
		case word.isAny("SELECT", "TABLE", "VALUES", "WITH") && !s.cur.isPunct('='):
			// PARTITION ... VALUES LESS THAN / IN, WITH PARSER and WITH SYSTEM
			// VERSIONING are definitions.
			if !s.cur.isAny("LESS", "IN", "PARSER", "SYSTEM", "DEFAULT") {
				s.out.WritesRows = true
			}
		case word.is("START") && s.cur.is("TRANSACTION"):
			s.out.OpensTransaction = true
		}
	}
}

// alterTable looks for the other tables that ALTER TABLE may involve, and for
// columns that may take the place of others.
func (s *scanner) alterTable() {
	added, dropped := false, false
	for s.cur.kind != tokenEnd {
		word := s.cur
		s.advance()
		switch {
		case word.isAny("CHANGE", "MODIFY"):
			s.out.AltersColumns = true
		case word.is("ADD"):
			added = true
		case word.is("DROP"):
			dropped = true
			s.out.Removes = s.out.Removes || s.cur.is("PARTITION")
		case word.isAny("TRUNCATE", "DISCARD"):
			s.out.Removes = true
		case word.is("IMPORT"):
			s.out.Brings = true
		case word.isAny("EXCHANGE", "CONVERT") && !s.cur.is("TO"):
			s.out.Removes, s.out.Brings = true, true
		case word.is("RENAME"):
			if s.cur.isAny("INDEX", "KEY", "CONSTRAINT") {
				continue
			}
			s.out.AltersColumns = true
			if s.cur.is("COLUMN") {
				continue
			}
			s.out.Removes, s.out.Brings = true, true
			s.skip("TO", "AS", "IF", "EXISTS")
			if s.cur.isPunct('=') {
				s.advance()
			}
			s.table()
		case word.is("TABLE"):
			// EXCHANGE PARTITION p WITH TABLE t, and MariaDB's CONVERT PARTITION p
			// TO TABLE t and CONVERT TABLE t TO PARTITION p.
			s.table()
		}
	}
	s.out.AltersColumns = s.out.AltersColumns || added && dropped
}

// rename reads a TO b, c TO d; both sides change.
func (s *scanner) rename() {
	if !s.accept("TABLE", "TABLES") {
		return // RENAME USER
	}
	s.skip("IF", "EXISTS")
	s.out.AltersColumns, s.out.Removes, s.out.Brings = true, true, true
	for {
		s.table()
		if s.accept("WAIT") {
			s.advance()
		}
		s.skip("NOWAIT")
		if !s.accept("TO") {
			s.out.Everything = true
			return
		}
		s.table()
		if !s.cur.isPunct(',') {
			return
		}
		s.advance()
	}
}

func (s *scanner) database() {
	s.skip("IF", "NOT", "EXISTS")
	name, ok := s.cur.identifier()
	if !ok || s.cur.kind == tokenWord && s.cur.isAny("CHARACTER", "DEFAULT", "COLLATE", "ENCRYPTION", "READ", "CHARSET") {
		name = s.db // ALTER DATABASE without a name
	}
	s.out.Databases = append(s.out.Databases, name)
	s.out.Everything = s.out.Everything || !utf8.ValidString(name)
}

// index reads on to the table behind ON.
func (s *scanner) index() {
	for s.cur.kind != tokenEnd {
		if s.accept("ON") {
			s.table()
			return
		}
		s.advance()
	}
}
