package canal

import (
	"errors"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Error numbers that go-mysql has no names for.
const (
	erAccountLocked      = 3118
	erSecureTransport    = 3159
	erInactivity         = 4031 // ER_CLIENT_INTERACTION_TIMEOUT of MySQL 8.0.24
	erConnectionKilled   = 1927 // MariaDB
	erSlaveSameID        = 4052 // MariaDB
	erMariaGTIDNotFound  = 1955 // MariaDB: ER_GTID_POSITION_NOT_FOUND_IN_BINLOG2
	erMariaGTIDNotFound1 = 1945 // MariaDB: ER_GTID_POSITION_NOT_FOUND_IN_BINLOG
	erMariaGTIDHole      = 1951 // MariaDB: ER_GTID_START_FROM_BINLOG_HOLE
)

// fatalReads maps what the server says with error 1236, its one number for
// everything that ends a dump, to what it means. Both vocabularies (master and
// slave, source and replica) and both flavors are covered; the first match counts.
var fatalReads = []struct {
	text string
	kind Kind
}{
	{"same server_uuid", DuplicateServerID},
	{"same server_id", DuplicateServerID},
	{"purged required binary logs", Purged},
	{"purged binary logs containing gtids", Purged},
	{"could not find first log file", Purged},
	{"could not find gtid state requested", Purged},
	{"more gtids than the", Behind},
	{"which is not in the master's binlog", Behind},
	{"is missing the gtid", Behind},
	{"impossible position", Behind},
	{"anonymous transaction", AnonymousTransaction},
	{"gtid_mode = ", WrongMode},
	{"binary log is not open", WrongMode},
	{"max_allowed_packet", TooLarge},
	{"misconfigured master", ServerFailed},
}

// classify gives an error of go-mysql its kind; byDefault is for those that the
// server did not send. Errors of this package pass unchanged.
func classify(err error, byDefault Kind, doing string) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	var my *mysql.MyError
	if !errors.As(err, &my) {
		return newError(byDefault, plainCause(err), "%s", doing)
	}
	return newError(kindOf(my), my, "%s", doing)
}

func kindOf(e *mysql.MyError) Kind {
	switch e.Code {
	case mysql.ER_ACCESS_DENIED_ERROR, mysql.ER_DBACCESS_DENIED_ERROR, mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR,
		mysql.ER_TABLEACCESS_DENIED_ERROR, mysql.ER_HOST_NOT_PRIVILEGED, mysql.ER_HOST_IS_BLOCKED,
		mysql.ER_MUST_CHANGE_PASSWORD,
		mysql.ER_MUST_CHANGE_PASSWORD_LOGIN, mysql.ER_ACCESS_DENIED_NO_PASSWORD_ERROR, erAccountLocked, erSecureTransport:
		return AccessDenied
	case erSlaveSameID:
		return DuplicateServerID
	case erMariaGTIDNotFound, erMariaGTIDNotFound1, erMariaGTIDHole:
		return Behind
	case mysql.ER_SERVER_SHUTDOWN, mysql.ER_NORMAL_SHUTDOWN, mysql.ER_ABORTING_CONNECTION,
		mysql.ER_NEW_ABORTING_CONNECTION,
		mysql.ER_QUERY_INTERRUPTED, erInactivity, erConnectionKilled,
		mysql.ER_NET_READ_ERROR, mysql.ER_NET_READ_INTERRUPTED, mysql.ER_NET_ERROR_ON_WRITE, mysql.ER_NET_WRITE_INTERRUPTED:
		return Disconnected
	case mysql.ER_CON_COUNT_ERROR, mysql.ER_TOO_MANY_USER_CONNECTIONS:
		return Unreachable
	case mysql.ER_NET_PACKET_TOO_LARGE:
		return TooLarge
	case mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG:
		said := strings.ToLower(e.Message)
		for _, f := range fatalReads {
			if strings.Contains(said, f.text) {
				return f.kind
			}
		}
	}
	return ServerFailed
}

// plainCause leaves out the stack traces that go-mysql's errors print.
func plainCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil || next.Error() != err.Error() {
			return err
		}
		err = next
	}
}
