package schema

// Kind is what a statement in a query event is to a reader of the binlog.
type Kind uint8

// The kinds of statements.
const (
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

// Statement is what Scan found out about one SQL statement. It keeps names only,
// never the statement's text.
type Statement struct {
	Kind Kind
	// Name is the savepoint's name as written (the server compares them without
	// regard to case), or the XA transaction's id in the server's own form,
	// X'gtrid',X'bqual',format: comparable whichever way it was written.
	Name string
	// Tables are the tables that a DDL, DML or LoadData statement touches, each
	// once. Where Scan can't be sure it names too many rather than too few.
	Tables []Name
	// Databases are touched as a whole (CREATE, ALTER or DROP DATABASE).
	Databases []string
	// Everything is true when the statement may touch any table.
	Everything bool
}

// Scan looks at a statement as it stands in a query event. currentDB is the
// event's database, which completes names without one. It is a lexer with a
// little knowledge, not a parser: what it can't follow it reports as touched.
func Scan(sql []byte, currentDB string) Statement {
	switch string(sql) {
	case "BEGIN":
		return Statement{Kind: Begin}
	case "COMMIT":
		return Statement{Kind: Commit}
	}
	return Statement{}
}

// Touches reports whether the statement may concern the table.
func (s *Statement) Touches(n Name) bool {
	if s.Everything {
		return true
	}
	for _, db := range s.Databases {
		if db == n.Database {
			return true
		}
	}
	for _, t := range s.Tables {
		if t == n {
			return true
		}
	}
	return false
}

// FormatXID writes an XA transaction id as Statement.Name has it, for the binary
// form that an XA PREPARE event holds.
func FormatXID(format uint32, gtrid, bqual []byte) string { return "" }
