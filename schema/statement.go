package schema

import (
	"slices"
	"strings"
)

// Kind is what a statement in a query event is to a reader of the binlog.
type Kind uint8

// The kinds of statements.
const (
	// Other changes no table: GRANT, FLUSH, comments and the like. Outside a
	// transaction it is a group of its own, as DDL is.
	Other Kind = iota
	Begin
	Commit
	Rollback
	Savepoint
	RollbackTo
	ReleaseSavepoint
	XAStart
	XAEnd
	XAPrepare
	XACommit
	XACommitOnePhase
	XARollback
	DDL
	DML
	LoadData
)

// String returns the kind's name for messages.
func (k Kind) String() string {
	return [...]string{"other", "begin", "commit", "rollback", "savepoint", "rollback to savepoint",
		"release savepoint", "xa start", "xa end", "xa prepare", "xa commit", "xa commit one phase",
		"xa rollback", "ddl", "dml", "load data"}[k]
}

// Statement is what Scan found out about one SQL statement. It keeps names only,
// never the statement's text.
type Statement struct {
	Kind Kind
	// Name is the savepoint's name as written (the server compares them without
	// regard to case), or the XA transaction's id in the server's own form,
	// X'gtrid',X'bqual',format: comparable whichever way it was written.
	Name string
	// Tables are the tables whose definition a DDL statement may change, or whose
	// rows a DML or LoadData statement may write, each once. Where Scan can't be
	// sure it names too many rather than too few.
	Tables []Name
	// Calls are the names before a parenthesis, in any case: functions that the statement
	// may call, and much else. They are complete for DML and LoadData unless Everything is
	// set.
	Calls []string
	// Databases are touched as a whole (CREATE, ALTER or DROP DATABASE).
	Databases []string
	// Everything is true when the statement may touch any table: SELECT, DO and
	// CALL get into the binlog only for what a function they call has written.
	// Tables need not be complete then.
	Everything bool
	// WritesRows is true for DML, LoadData and CREATE TABLE ... SELECT: rows of
	// Tables were written which the statement alone does not tell.
	WritesRows bool
	// Deletes is true for DML that only removes rows, Updates for DML that only changes
	// rows: neither inserts into any of Tables.
	Deletes, Updates bool
	// Removes is true for DDL that takes rows out of Tables or Databases, or may, which
	// no row event tells: TRUNCATE, DROP, a partition or a tablespace that goes, a table
	// that is renamed. Brings is true for DDL that may put rows into them: a partition
	// that is exchanged, a tablespace that is imported, a table that takes the name.
	Removes, Brings bool
	// AltersColumns is true for DDL after which other columns may stand where the old
	// ones stood, of the same number and types: columns that are renamed, moved or
	// replaced, and tables that take another one's place.
	AltersColumns bool
	// OpensTransaction is true for CREATE TABLE ... START TRANSACTION, by which
	// MySQL 8.0.21+ logs CREATE TABLE ... SELECT: the rows follow, and the
	// transaction goes on to its own COMMIT. (MariaDB logs a plain CREATE TABLE
	// there, inside a group that its GTID event does not mark as standalone.)
	OpensTransaction bool
}

// Touches reports whether the statement may concern the table. Names are compared
// without regard to case, since servers with lower_case_table_names log
// statements as they were typed.
func (s *Statement) Touches(n Name) bool {
	if s.Everything {
		return true
	}
	for _, db := range s.Databases {
		if strings.EqualFold(db, n.Database) {
			return true
		}
	}
	for _, t := range s.Tables {
		if strings.EqualFold(t.Table, n.Table) && strings.EqualFold(t.Database, n.Database) {
			return true
		}
	}
	return false
}

// Scan looks at a statement as it stands in a query event. currentDB is the
// event's database, which completes names without one. It is a lexer with a
// little knowledge, not a parser: what it can't follow it reports as touched.
//
// What no look at a statement can tell is what triggers write: in statement
// format their changes are not in the binlog at all.
func Scan(sql []byte, currentDB string) Statement {
	// Nearly every query event is one of these two.
	switch string(sql) {
	case "BEGIN":
		return Statement{Kind: Begin}
	case "COMMIT":
		return Statement{Kind: Commit}
	}
	l := lexer{sql: sql}
	s := scanAs(&l, currentDB)
	for _, d := range l.others() {
		other := scanAs(&lexer{sql: sql, dialect: d}, currentDB)
		s.add(&other)
	}
	return s
}

// add joins another reading of the same statement.
func (s *Statement) add(o *Statement) {
	if s.Kind != o.Kind {
		s.Everything = true
		s.Kind = max(s.Kind, o.Kind)
	}
	for _, n := range o.Tables {
		s.addTable(n)
	}
	for _, c := range o.Calls {
		s.addCall(c)
	}
	for _, db := range o.Databases {
		if !slices.Contains(s.Databases, db) {
			s.Databases = append(s.Databases, db)
		}
	}
	s.Everything = s.Everything || o.Everything
	s.WritesRows = s.WritesRows || o.WritesRows
	s.AltersColumns = s.AltersColumns || o.AltersColumns
	s.Deletes, s.Updates = s.Deletes && o.Deletes, s.Updates && o.Updates
	s.Removes, s.Brings = s.Removes || o.Removes, s.Brings || o.Brings
	s.OpensTransaction = s.OpensTransaction || o.OpensTransaction
}

// maxTables bounds the work and memory for statements that can't be followed.
const maxTables = 200

func (s *Statement) addTable(n Name) {
	switch {
	case s.Everything:
	case len(s.Tables) >= maxTables:
		s.Everything = true
	case !slices.Contains(s.Tables, n):
		s.Tables = append(s.Tables, n)
	}
}

// addCall adds a name before a parenthesis.
func (s *Statement) addCall(name string) {
	switch {
	case slices.Contains(s.Calls, name):
	case len(s.Calls) < maxTables:
		s.Calls = append(s.Calls, name)
	case s.WritesRows:
		s.Everything = true
	}
}

// scanner reads one statement: cur is the token under consideration.
type scanner struct {
	lex *lexer
	db  string
	cur token
	out Statement
}

func scanAs(l *lexer, currentDB string) Statement {
	s := &scanner{lex: l, db: currentDB}
	s.advance()
	s.statement()
	// The rest is read for the lexer's sake: only then it knows whether there is
	// another way to read the statement.
	for s.cur.kind != tokenEnd {
		s.advance()
	}
	return s.out
}

func (s *scanner) advance() {
	before := s.cur
	s.cur = s.lex.next()
	if !s.cur.isPunct('(') {
		return
	}
	if name, ok := before.identifier(); ok {
		s.out.addCall(name)
	}
}

// accept moves over the current token if it is one of the keywords.
func (s *scanner) accept(keywords ...string) bool {
	if !s.cur.isAny(keywords...) {
		return false
	}
	s.advance()
	return true
}

// skip moves over any number of the keywords.
func (s *scanner) skip(keywords ...string) {
	for s.accept(keywords...) {
	}
}

func (s *scanner) statement() {
	first := s.cur
	for first.isPunct('(') {
		s.advance()
		first = s.cur
	}
	s.advance()
	switch {
	case first.kind == tokenEnd:
		// A comment alone, such as MariaDB's "# Dummy event".
	case first.is("BEGIN"), first.is("START") && s.cur.is("TRANSACTION"):
		s.out.Kind = Begin
	case first.is("COMMIT"):
		s.out.Kind = Commit
	case first.is("ROLLBACK"):
		s.rollback()
	case first.is("SAVEPOINT"):
		s.named(Savepoint)
	case first.is("RELEASE"):
		s.skip("SAVEPOINT")
		s.named(ReleaseSavepoint)
	case first.is("XA"):
		s.xa()
	case first.is("SET") && s.cur.is("STATEMENT"):
		s.setStatement()
	case first.is("ANALYZE") && !s.cur.isAny("NO_WRITE_TO_BINLOG", "LOCAL", "TABLE", "TABLES"):
		s.analyze()
	case first.isAny("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "OPTIMIZE", "REPAIR", "ANALYZE", "IMPORT"):
		s.out.Kind = DDL
		s.ddl(first)
	case first.isAny("INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "LOAD", "SELECT", "DO", "CALL", "EXECUTE",
		"HANDLER", "TABLE", "VALUES", "MERGE"):
		s.out.Kind, s.out.WritesRows = DML, true
		s.dml(first)
	case first.isAny("GRANT", "REVOKE", "SET", "FLUSH", "USE", "INSTALL", "UNINSTALL", "PURGE", "RESET", "KILL",
		"SHUTDOWN", "START", "STOP", "CHANGE", "LOCK", "UNLOCK", "CHECK", "CHECKSUM", "CACHE", "CLONE", "BACKUP",
		"SIGNAL", "PREPARE", "DEALLOCATE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "HELP", "BINLOG"):
		// They change no table.
	default:
		s.out.Everything = true
	}
}

func (s *scanner) rollback() {
	s.out.Kind = Rollback
	s.skip("WORK")
	if s.accept("TO") {
		s.skip("SAVEPOINT")
		s.named(RollbackTo)
	}
}

func (s *scanner) named(k Kind) {
	s.out.Kind = k
	s.out.Name, _ = s.cur.identifier()
}

// setStatement passes over MariaDB's SET STATEMENT variable = value, ... FOR.
func (s *scanner) setStatement() {
	depth := 0
	for ; s.cur.kind != tokenEnd; s.advance() {
		depth = s.depth(depth)
		if depth == 0 && s.cur.is("FOR") {
			s.advance()
			s.statement()
			return
		}
	}
}

// analyze passes over MariaDB's ANALYZE [FORMAT = name] statement, which carries
// the statement out.
func (s *scanner) analyze() {
	if s.accept("FORMAT") {
		if s.cur.isPunct('=') {
			s.advance()
		}
		s.advance()
	}
	s.statement()
}

// depth counts parentheses.
func (s *scanner) depth(d int) int {
	switch {
	case s.cur.isPunct('('):
		return d + 1
	case s.cur.isPunct(')'):
		return d - 1
	}
	return d
}

// name reads a table's name: table, db.table, or .table. It leaves the token
// behind the name as the current one.
func (s *scanner) name() (Name, bool) {
	if s.cur.isPunct('.') { // an old form for "in the current database"
		s.advance()
	}
	first, ok := s.cur.identifier()
	if !ok {
		return Name{}, false
	}
	s.advance()
	if !s.cur.isPunct('.') {
		return Name{s.db, first}, true
	}
	s.advance()
	second, ok := s.cur.identifier()
	if !ok {
		return Name{}, false
	}
	s.advance()
	return Name{first, second}, true
}

// table reads a name that the statement touches; if there is none the statement
// is not understood.
func (s *scanner) table() {
	n, ok := s.name()
	if !ok {
		s.out.Everything = true
		return
	}
	s.touch(n)
}

// touch adds a table. A name that is not UTF-8 was typed in another character
// set and may be any table.
func (s *scanner) touch(n Name) {
	if !validName(n) {
		s.out.Everything = true
		return
	}
	s.out.addTable(n)
}

// tables reads names separated by commas.
func (s *scanner) tables() {
	for {
		s.table()
		if !s.cur.isPunct(',') {
			return
		}
		s.advance()
	}
}

// names takes every identifier and pair of them for tables, until stop.
func (s *scanner) names(stop func() bool) {
	for s.cur.kind != tokenEnd && !s.out.Everything && !stop() {
		if _, ok := s.cur.identifier(); !ok && !s.cur.isPunct('.') {
			s.advance()
			continue
		}
		if n, ok := s.name(); ok {
			s.touch(n)
		}
	}
}
