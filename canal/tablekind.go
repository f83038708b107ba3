package canal

import (
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const kindQuery = "SELECT TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND " +
	"TABLE_NAME = ?"

// tableKind is what information_schema says that a table is.
type tableKind struct {
	kind   string // "BASE TABLE"
	engine string
}

// suits refuses a table whose rows this server's binlog does not hold, or not as they
// were written. One that is not there, or not visible, is none of its business.
func (s *session) suits(name schema.Name) error {
	r, err := s.inUTF8("the kind of "+name.String(), kindQuery, name.Database, name.Table)
	if err != nil || r.RowNumber() == 0 {
		return err
	}
	return tableKind{text(r, 0, 0), text(r, 0, 1)}.suits(name)
}

// elsewhere are engines whose rows come by other ways than through this server.
var elsewhere = []string{"FEDERATED", "SPIDER", "CONNECT", "MRG_MYISAM", "NDBCLUSTER", "NDB"}

func (k tableKind) suits(name schema.Name) error {
	refuse := func(why string) error {
		e := newError(BadConfig, nil, "%s can't be an outbox table: %s", name, why)
		e.Table = name.String()
		return e
	}
	switch k.kind {
	case "BASE TABLE":
	case "VIEW":
		return refuse("it is a view. The binlog holds rows under the name of the table that they lie in; name that table")
	case "SYSTEM VERSIONED":
		return refuse("it is WITH SYSTEM VERSIONING. The binlog holds its history as well, where an UPDATE inserts a row " +
			"and a DELETE updates one, so that events would come again; " +
			"ALTER TABLE ... DROP SYSTEM VERSIONING, or use another table")
	case "SEQUENCE":
		return refuse("it is a sequence")
	default:
		return refuse("it is a " + k.kind + ", whose rows are in no binlog")
	}
	if slices.Contains(elsewhere, strings.ToUpper(k.engine)) {
		return refuse("its engine is " + k.engine +
			". What is written to it by another server, or to a table below it, is not in this server's binlog under its " +
			"name; use InnoDB")
	}
	return nil
}

// isTable reports whether a pattern may mean it: views and sequences bear names, too.
func (k tableKind) isTable() bool { return !strings.Contains(k.kind, "VIEW") && k.kind != "SEQUENCE" }
