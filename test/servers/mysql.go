package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// Options says how to start a MySQL or MariaDB server. The zero value is good.
type Options struct {
	// Name is for log lines and the data folder's name; the kind of server by default.
	Name string
	// Dir holds the server's data and log. It is made if need be, kept, and gone on
	// with by the next start. A temporary folder is used when it is empty.
	Dir string
	// Port to listen on. By default that of the last start in Dir, or a free one.
	Port int
	// ServerID is the server's id; its port by default.
	ServerID uint32
	// Args are more arguments for the server; they win over those given here.
	Args []string
	// InitArgs are arguments that must hold when the data is made, as
	// --lower-case-table-names=1. They are given to each start, too.
	InitArgs []string
	// Own asks for a server that this process starts, whatever the environment
	// says. Tests that stop, pause or configure their server need it. Any of Dir,
	// Port, ServerID, Args and InitArgs implies it.
	Own bool
	// Log is told what takes long, as fetching the program; nil for nobody.
	Log io.Writer

	// Detached lets the server outlive this process. Dir must be given; StopDetached
	// ends it.
	Detached bool
}

func (o Options) own() bool {
	return o.Own || o.Dir != "" || o.Port != 0 || o.ServerID != 0 || len(o.Args)+len(o.InitArgs) > 0
}

// MySQL is a MySQL or MariaDB server. Its methods may be called from several
// goroutines.
type MySQL struct {
	instance
	kind     Kind
	db       *database // nil when the environment names the server
	addr     string
	user     string
	password string
}

// StartMySQL starts a MySQL server, fetching the program if need be, and waits until
// it takes queries. Row format, GTIDs and binlog are on; binlog_row_metadata is
// MINIMAL, as by default. ctx bounds the start, not the server's life: close it.
func StartMySQL(ctx context.Context, options Options) (*MySQL, error) {
	return startDatabase(ctx, KindMySQL, "BINLOG_OUTBOX_TEST_MYSQL", options)
}

// StartMariaDB does the same as StartMySQL with the MariaDB of the machine's release.
func StartMariaDB(ctx context.Context, options Options) (*MySQL, error) {
	return startDatabase(ctx, KindMariaDB, "BINLOG_OUTBOX_TEST_MARIADB", options)
}

func startDatabase(ctx context.Context, kind Kind, variable string, options Options) (_ *MySQL, err error) {
	if options.Name == "" {
		options.Name = string(kind)
	}
	s := &MySQL{instance: instance{name: options.Name, detached: options.Detached, ports: map[string]*port{}}, kind: kind,
		user: "root"}
	if named, ok := external(variable); ok && !options.own() {
		s.user, s.password, s.addr, err = parseAccount(named)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", variable, err)
		}
		return s, s.ping(ctx)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting %s: %w", options.Name, err), s.Close())
		}
	}()
	if options.Detached && options.Dir == "" {
		return nil, errors.New("a detached server needs a folder of its own")
	}
	if s.db, err = findDatabase(ctx, kind, options.Log); err != nil {
		return nil, err
	}
	if s.folder, err = openFolder(ctx, options.Dir, options.Name); err != nil {
		return nil, err
	}
	if err = s.reserve(ctx, "mysql", options.Port); err != nil {
		return nil, err
	}
	s.addr = addr(s.Port())
	data := s.folder.join("data")
	if !exists(data) {
		err = build(ctx, data, func(tmp string) error { return s.db.prepare(ctx, tmp, options.InitArgs) })
		if err != nil {
			return nil, err
		}
	}
	// In a folder for all, each server that starts would remove the others' tables.
	temporary := s.folder.join("tmp")
	if err := os.MkdirAll(temporary, 0o750); err != nil {
		return nil, err
	}
	args := s.args(data, temporary, options)
	// The start's context does not bound the server's life.
	s.command = func() *exec.Cmd { return s.db.command(context.Background(), s.db.server(), args...) }
	s.ready = s.ping
	if err = s.launch(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *MySQL) args(data, temporary string, options Options) []string {
	id := options.ServerID
	if id == 0 {
		id = uint32(s.Port())
	}
	args := append(s.db.baseArgs(data),
		"--port="+strconv.Itoa(s.Port()),
		"--bind-address="+loopback,
		"--socket=mysqld.sock", // relative to the data: socket paths are short
		"--pid-file=mysqld.pid",
		"--tmpdir="+temporary,
		"--skip-name-resolve",
		"--server-id="+strconv.FormatUint(uint64(id), 10),
		"--log-bin=binlog",
		// A server here survives kill -9, not a power cut, and is quicker for it.
		"--innodb-flush-log-at-trx-commit=2",
		"--sync-binlog=0",
		"--innodb-buffer-pool-size=256M",
	)
	if s.kind == KindMySQL {
		args = append(args, "--gtid-mode=ON", "--enforce-gtid-consistency=ON", redoSize)
	} else {
		args = append(args, "--binlog-format=ROW", "--innodb-log-file-size=32M")
	}
	args = append(args, options.InitArgs...)
	return append(args, options.Args...)
}

// Flavor is the server's flavour as go-mysql spells it: mysql or mariadb.
func (s *MySQL) Flavor() string {
	if s.kind == KindMariaDB {
		return mysql.MariaDBFlavor
	}
	return mysql.MySQLFlavor
}

// Addr is the server's host:port.
func (s *MySQL) Addr() string { return s.addr }

// Host is the host in Addr.
func (s *MySQL) Host() string {
	host, _, _ := net.SplitHostPort(s.addr)
	return host
}

// Port is the port in Addr.
func (s *MySQL) Port() int {
	if p := s.ports["mysql"]; p != nil {
		return p.number
	}
	_, text, _ := net.SplitHostPort(s.addr)
	number, _ := strconv.Atoi(text)
	return number
}

// User is an account that may do everything.
func (s *MySQL) User() string { return s.user }

// Password is User's password.
func (s *MySQL) Password() string { return s.password }

// connectTimeout bounds a log-in: a paused server takes connections and says nothing.
const connectTimeout = 10 * time.Second

// Conn opens a connection as User, with the database db selected unless it is empty.
// ctx bounds the log-in, not the connection's life.
func (s *MySQL) Conn(ctx context.Context, db string) (*client.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	// go-mysql's own way looks at the context while it dials and not while it waits
	// for the server's greeting.
	cut := func() bool { return true }
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil {
			cut = context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	conn, err := client.ConnectWithDialer(ctx, "tcp", s.addr, s.user, s.password, db, dial)
	if err == nil && !cut() {
		err = context.Cause(ctx) // cut when it had just succeeded
	}
	if err != nil {
		cut()
		return nil, fmt.Errorf("connecting to %s: %w", s.name, err)
	}
	return conn, nil
}

// Exec runs statements in order on one connection of their own.
func (s *MySQL) Exec(ctx context.Context, statements ...string) error {
	return s.onConn(ctx, func(conn *client.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Execute(statement); err != nil {
				return fmt.Errorf("running %q on %s: %w", clip(statement), s.name, err)
			}
		}
		return nil
	})
}

// Query runs one statement on a connection of its own and answers its whole result.
func (s *MySQL) Query(ctx context.Context, statement string, args ...any) (*mysql.Result, error) {
	var result *mysql.Result
	err := s.onConn(ctx, func(conn *client.Conn) (err error) {
		if result, err = conn.Execute(statement, args...); err != nil {
			return fmt.Errorf("running %q on %s: %w", clip(statement), s.name, err)
		}
		return nil
	})
	return result, err
}

// Value runs one statement and answers the first column of its first row as text,
// empty when there is none or it is NULL.
func (s *MySQL) Value(ctx context.Context, statement string, args ...any) (string, error) {
	result, err := s.Query(ctx, statement, args...)
	if err != nil || result.Resultset == nil || len(result.Values) == 0 {
		return "", err
	}
	return result.GetString(0, 0)
}

// onConn gives do a connection that is cut when ctx ends, since go-mysql's
// statements take no context.
func (s *MySQL) onConn(ctx context.Context, do func(*client.Conn) error) error {
	conn, err := s.Conn(ctx, "")
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Conn.Close() })
	defer func() {
		if stop() {
			_ = conn.Quit() // the server's log names connections that just break off
		}
	}()
	if err := do(conn); err != nil {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		return err
	}
	return nil
}

func (s *MySQL) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := s.Query(ctx, "SELECT 1")
	return err
}

// The account that CreateCDCUser makes.
const (
	CDCUser     = "cdc"
	CDCPassword = "cdc-password"
)

// CreateCDCUser makes the account that a connector logs in with, and no more rights
// than the documentation asks for.
func (s *MySQL) CreateCDCUser(ctx context.Context) error {
	return s.Exec(ctx,
		"CREATE USER IF NOT EXISTS "+CDCUser+"@'%' IDENTIFIED BY '"+CDCPassword+"'",
		"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO "+CDCUser+"@'%'")
}

// Tool is a program that comes with the server, as mysqlbinlog, ready to be run.
// Nil when the environment names the server.
func (s *MySQL) Tool(ctx context.Context, program string, args ...string) *exec.Cmd {
	if s.db == nil {
		return nil
	}
	return s.db.command(ctx, program, args...)
}

func clip(statement string) string {
	statement = strings.Join(strings.Fields(statement), " ")
	if len(statement) > 120 {
		return statement[:120] + "..."
	}
	return statement
}
