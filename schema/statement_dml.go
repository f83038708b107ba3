package schema

// dml reads on behind the verb.
func (s *scanner) dml(verb token) {
	switch {
	case verb.isAny("INSERT", "REPLACE"):
		s.skip("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO")
		s.table()
	case verb.is("UPDATE"):
		s.out.Updates = true
		s.skip("LOW_PRIORITY", "IGNORE")
		s.until("SET")
	case verb.is("DELETE"):
		s.out.Deletes = true
		s.skip("LOW_PRIORITY", "QUICK", "IGNORE", "HISTORY")
		s.until("WHERE", "ORDER", "LIMIT", "RETURNING")
	case verb.is("LOAD"):
		s.load()
	case verb.is("WITH"):
		s.with()
	default:
		s.out.Everything = true
	}
}

// until takes all names up to one of the keywords outside parentheses: the
// tables of a multi-table UPDATE or DELETE, and with them aliases and columns of
// join conditions.
func (s *scanner) until(keywords ...string) {
	depth := 0
	s.names(func() bool {
		depth = s.depth(depth)
		return depth == 0 && s.cur.isAny(keywords...)
	})
}

func (s *scanner) load() {
	s.out.Kind = LoadData
	for s.cur.kind != tokenEnd {
		if s.accept("INTO") && s.accept("TABLE") {
			s.table()
			return
		}
		s.advance()
	}
	s.out.Everything = true
}

// with passes over common table expressions.
func (s *scanner) with() {
	depth := 0
	for ; s.cur.kind != tokenEnd; s.advance() {
		depth = s.depth(depth)
		if depth == 0 && s.cur.isAny("UPDATE", "DELETE", "INSERT", "REPLACE", "SELECT") {
			verb := s.cur
			s.advance()
			s.dml(verb)
			return
		}
	}
	s.out.Everything = true
}
