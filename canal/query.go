package canal

import (
	"encoding/binary"
	"fmt"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

// queryEvent is a statement in the log. The slices alias the event.
type queryEvent struct {
	database []byte
	sql      []byte
	status   []byte // variables of the session
	failed   bool   // it ended with an error
}

// parseQuery reads QUERY_EVENT, and EXECUTE_LOAD_QUERY_EVENT whose post-header
// is longer by the place of the file name in the statement.
func parseQuery(kind replication.EventType, body []byte) (queryEvent, error) {
	r := reader{b: body}
	r.take(8)
	schemaLen := int(r.uint(1))
	failed := r.uint(2) != 0
	statusLen := int(r.uint(2))
	if kind == replication.EXECUTE_LOAD_QUERY_EVENT {
		r.take(13)
	}
	status := r.take(statusLen)
	q := queryEvent{status: status, failed: failed, database: r.take(schemaLen)}
	r.take(1)
	q.sql = r.b
	if r.bad {
		return q, fmt.Errorf("query event of %d bytes ends early", len(body))
	}
	return q, nil
}

// The status variables of query events that come before those that are wanted, or are.
const (
	statusFlags2       = 0
	statusSQLMode      = 1
	statusCatalog      = 2
	statusAutoInc      = 3
	statusCharset      = 4
	statusTimeZone     = 5
	statusCatalogName  = 6
	statusTimeNames    = 7
	statusCharsetDB    = 8
	statusMapUpdate    = 9
	statusDataWritten  = 10
	statusInvoker      = 11
	statusUpdatedDBs   = 12
	statusMicroseconds = 13
	statusExplicitTS   = 16
	statusDDLXID       = 17
	statusCollation4   = 18
	statusRequireKey   = 19
	statusEncryption   = 20
	statusMariaHrNow   = 128
	statusMariaXID     = 129
	statusMariaFlags3  = 130
)

// mariaExplicitTS is a bit of the flags.
const mariaExplicitTS = 1 << 24

// fixedStatus is the length of the variables that have one.
var fixedStatus = map[uint64]int{
	statusAutoInc: 4, statusTimeNames: 2, statusCharsetDB: 2, statusMapUpdate: 8, statusDataWritten: 4,
	statusMicroseconds: 3, statusDDLXID: 8, statusCollation4: 2, statusRequireKey: 1, statusEncryption: 1,
	statusMariaHrNow: 3, statusMariaXID: 8, statusMariaFlags3: 2,
}

// statement is the event as its session meant it. Variables behind one that is not known
// are not known either; what needs them is then asked of the server.
func (q *queryEvent) statement(source ddl.Source) ddl.Statement {
	s := ddl.Statement{SQL: q.sql, Database: string(q.database), Failed: q.failed}
	r := reader{b: q.status}
	for len(r.b) > 0 && !r.bad {
		switch code := r.uint(1); code {
		case statusFlags2:
			// MariaDB's explicit_defaults_for_timestamp. Before 10.11 not all releases tell it.
			if on := r.uint(4)&mariaExplicitTS != 0; source.MariaDB && (on || source.Version >= 101100) {
				s.ExplicitTimestamps = &on
			}
		case statusSQLMode:
			s.Mode = ddl.Mode(r.uint(8))
		case statusCharset:
			if ids := r.take(6); !r.bad {
				s.Charset = charsetAt(ids)
				s.Connection = charsetAt(ids[2:])
				s.ServerCharset = charsetAt(ids[4:])
			}
		case statusCatalog:
			r.take(int(r.uint(1)) + 1)
		case statusTimeZone, statusCatalogName:
			r.take(int(r.uint(1)))
		case statusInvoker:
			r.take(int(r.uint(1)))
			r.take(int(r.uint(1)))
		case statusUpdatedDBs:
			for n := r.uint(1); n > 0 && n < 254 && !r.bad; n-- {
				for r.uint(1) != 0 && !r.bad {
				}
			}
		case statusExplicitTS:
			if on := r.uint(1) != 0; !r.bad {
				s.ExplicitTimestamps = &on
			}
		default:
			n, known := fixedStatus[code]
			if !known {
				return s
			}
			r.take(n)
		}
	}
	return s
}

func charsetAt(id []byte) string {
	name, _ := schema.CharsetOf(uint64(binary.LittleEndian.Uint16(id)))
	return name
}
