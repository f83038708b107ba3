package canaltest

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
)

// User and Password let anybody into a Server.
const (
	User     = "repl"
	Password = "secret"
)

// Dump is one request for the binlog.
type Dump struct {
	// Set is the GTID set it was asked for, or File and Pos.
	Set  string
	File string
	Pos  uint32
}

// Server speaks enough of MySQL's protocol to be read from: it answers the
// questions a reader asks first, and serves what Serve says. It plays a MySQL
// with GTIDs on; what it says about itself are the fields, which are read when
// a question comes and not to be changed after Start.
type Server struct {
	UUID      string
	GTIDMode  string
	Executed  string
	Purged    string
	LogBin    string
	Format    string   // binlog_format; empty means ROW
	Binlogs   []string // names; each is 1 MiB long
	StatusErr error    // instead of the answer to SHOW BINARY LOG STATUS
	Tables    []string // of database shop
	// Received is the Retrieved_Gtid_Set of SHOW REPLICA STATUS; a server without one
	// is no replica.
	Received string

	// Serve is called for each dump and sends until it returns: an error goes to
	// the reader as an ERR packet, after nil the server says nothing more.
	Serve func(d Dump, to *Sender) error

	listener net.Listener
	wg       sync.WaitGroup
	done     chan struct{}

	mu       sync.Mutex
	readOnly bool
	conns    map[net.Conn]struct{}
	queries  []string
	dumps    []Dump
}

// Start listens on a loopback port. The caller closes the server.
func (s *Server) Start() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listener, s.done, s.conns = l, make(chan struct{}), map[net.Conn]struct{}{}
	s.wg.Go(s.accept)
	return nil
}

// Port is where the server listens, on 127.0.0.1.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// SetReadOnly makes the server a replica, or a primary again, at any time.
func (s *Server) SetReadOnly(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readOnly = on
}

func (s *Server) executed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Executed
}

func (s *Server) isReadOnly() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readOnly {
		return "ON"
	}
	return "OFF"
}

// Queries are all statements that came so far.
func (s *Server) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

// Dumps are all requests for the binlog that came so far.
func (s *Server) Dumps() []Dump {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dumps)
}

// Cut closes all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Close ends the server and waits for its goroutines.
func (s *Server) Close() error {
	close(s.done)
	err := s.listener.Close()
	s.Cut()
	s.wg.Wait()
	return err
}

func (s *Server) accept() {
	// Without TLS and its key generation, which takes longer than a test.
	users := server.NewInMemoryAuthenticationHandler(mysql.AUTH_NATIVE_PASSWORD)
	if err := users.AddUser(User, Password); err != nil {
		panic(err) // it has no reason to
	}
	conf := server.NewServer("8.4.0", mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() {
			defer func() {
				_ = c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			}()
			h := &session{s: s}
			sc, err := conf.NewCustomizedConn(c, users, h)
			h.conn = sc
			for err == nil {
				err = sc.HandleCommand()
			}
		})
	}
}

// session is one connection to the server.
type session struct {
	server.EmptyHandler
	s    *Server
	conn *server.Conn
}

func (h *session) UseDB(string) error { return nil }

func (h *session) HandleQuery(query string) (*mysql.Result, error) {
	h.s.mu.Lock()
	h.s.queries = append(h.s.queries, strings.Clone(query))
	h.s.mu.Unlock()
	return h.s.answer(query)
}

func (s *Server) answer(query string) (*mysql.Result, error) {
	switch {
	case strings.Contains(query, "BINLOG_CHECKSUM"):
		return rows([]string{"Variable_name", "Value"}, []any{"binlog_checksum", "CRC32"})
	case strings.HasPrefix(query, "SHOW GLOBAL VARIABLES"):
		return rows([]string{"Variable_name", "Value"},
			[]any{"server_uuid", s.UUID}, []any{"gtid_mode", s.GTIDMode}, []any{"log_bin", s.LogBin}, []any{"server_id", "1"},
			[]any{"read_only", s.isReadOnly()}, []any{"super_read_only", s.isReadOnly()},
			[]any{"version", "8.4.0"}, []any{"binlog_format", cmp.Or(s.Format, "ROW")}, []any{"binlog_row_image", "FULL"})
	case strings.Contains(query, "@@GLOBAL.gtid_executed"):
		return rows([]string{"executed", "purged"}, []any{s.executed(), s.Purged})
	case strings.Contains(query, "information_schema.TABLES"):
		var all [][]any
		for _, name := range s.Tables {
			all = append(all, []any{"shop", name, "BASE TABLE", "InnoDB"})
		}
		return rows([]string{"TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "ENGINE"}, all...)
	case query == "SHOW BINARY LOGS":
		var all [][]any
		for _, name := range s.Binlogs {
			all = append(all, []any{name, uint64(1 << 20)})
		}
		return rows([]string{"Log_name", "File_size"}, all...)
	case strings.HasPrefix(query, "SHOW BINLOG EVENTS"):
		return rows([]string{"Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"},
			[]any{s.Binlogs[0], uint64(4), "Format_desc", "1", uint64(126), ""},
			[]any{s.Binlogs[0], uint64(126), "Previous_gtids", "1", uint64(157), s.Purged})
	case query == "SHOW BINARY LOG STATUS" && s.StatusErr == nil, query == "SHOW MASTER STATUS":
		return rows([]string{"File", "Position", "Do", "Ignore", "Executed_Gtid_Set"},
			[]any{s.Binlogs[len(s.Binlogs)-1], uint64(157), "", "", s.executed()})
	case query == "SHOW BINARY LOG STATUS":
		return nil, s.StatusErr
	case query == "SHOW REPLICA STATUS" && s.Received != "":
		return rows([]string{"Retrieved_Gtid_Set"}, []any{s.Received})
	case query == "SHOW REPLICA STATUS":
		return rows([]string{"Retrieved_Gtid_Set"})
	case strings.HasPrefix(query, "SET "):
		return nil, nil
	}
	return nil, mysql.NewError(mysql.ER_PARSE_ERROR, "not known: "+query)
}

func rows(names []string, values ...[]any) (*mysql.Result, error) {
	r, err := mysql.BuildSimpleTextResultset(names, values)
	if err != nil {
		return nil, err
	}
	return mysql.NewResult(r), nil
}

// HandleStmtPrepare and HandleStmtExecute answer the question for a table's
// columns: no table is there, so shapes must come with the binlog.
func (h *session) HandleStmtPrepare(query string) (params, columns int, context any, err error) {
	return strings.Count(query, "?"), 0, nil, nil
}

func (h *session) HandleStmtExecute(any, string, []any) (*mysql.Result, error) {
	names := make([]string, 15)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	r, err := mysql.BuildSimpleBinaryResultset(names, nil)
	if err != nil {
		return nil, err
	}
	return mysql.NewResult(r), nil
}

func (h *session) HandleStmtClose(any) error { return nil }

// HandleOtherCommand takes the commands of replication. It holds the connection
// for as long as the dump lasts.
func (h *session) HandleOtherCommand(cmd byte, data []byte) error {
	var d Dump
	switch {
	case cmd == mysql.COM_REGISTER_SLAVE:
		return nil
	case cmd == mysql.COM_BINLOG_DUMP && len(data) >= 10:
		d.Pos, d.File = binary.LittleEndian.Uint32(data), string(data[10:])
	case cmd == mysql.COM_BINLOG_DUMP_GTID && len(data) >= 22:
		// Flags, server id, an empty file name with its length, position, length of the set.
		set, err := mysql.DecodeMysqlGTIDSet(data[22:])
		if err != nil {
			return err
		}
		d.Set = set.String()
	default:
		return mysql.NewError(mysql.ER_UNKNOWN_COM_ERROR, "not known")
	}
	h.s.mu.Lock()
	h.s.dumps = append(h.s.dumps, d)
	h.s.mu.Unlock()
	if err := h.s.Serve(d, &Sender{conn: h.conn}); err != nil {
		return err
	}
	<-h.s.done
	return errStopped
}

var errStopped = mysql.NewError(mysql.ER_SERVER_SHUTDOWN, "Server shutdown in progress")

// Sender sends to the reader of one dump.
type Sender struct{ conn *server.Conn }

// Event sends one event.
func (s *Sender) Event(event []byte) error {
	return s.Packet(append([]byte{mysql.OK_HEADER}, event...))
}

// Packet sends a packet of any kind.
func (s *Sender) Packet(p []byte) error {
	return s.conn.WritePacket(append(make([]byte, 4, 4+len(p)), p...))
}

// Cut closes the connection.
func (s *Sender) Cut() { s.conn.Close() }
