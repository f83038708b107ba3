package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/schema/ddl"
)

// Server is what a source says about itself.
type Server struct {
	Flavor  position.Flavor
	Version string
	// UUID is server_uuid on MySQL, empty on MariaDB.
	UUID     string
	ServerID uint32
	// GTIDMode is gtid_mode on MySQL ("ON", "OFF_PERMISSIVE", ...), "ON" on MariaDB.
	GTIDMode string
	// LooseGTIDs says that MariaDB lets a server write lower numbers than its domain has
	// (gtid_strict_mode=OFF): such a domain looks as if it had lost its newest ones.
	LooseGTIDs bool
	// Executed are all transactions of the server: gtid_executed, on MariaDB
	// gtid_binlog_pos.
	Executed *position.Set
	// Purged are those no longer in its binlogs; on MariaDB where its first binlog
	// begins, which needs the right to list binlogs, or nil.
	Purged *position.Set
	// The settings that outbox tables depend on, empty where the server has no
	// such setting.
	LogBin         string // "ON"
	BinlogFormat   string // "ROW"
	RowImage       string // "FULL"
	RowMetadata    string // "FULL", "MINIMAL", ...
	RowValueOption string // "PARTIAL_JSON"
	// LogReplicated is log_replica_updates or log_slave_updates: whether a replica
	// writes what it replicates to its own binlog.
	LogReplicated string // "ON"
	// SyncBinlog and FlushLog are sync_binlog and innodb_flush_log_at_trx_commit:
	// other than 1, a crash of the server's host may lose what was published.
	SyncBinlog, FlushLog string
	// ReadOnly names the setting that keeps the server from taking writes
	// ("super_read_only", "read_only"), as on a replica; empty on a primary.
	ReadOnly string
	// Retention is how long the server keeps binlogs; 0 means for ever or unknown.
	Retention time.Duration

	galera     bool // a member of a Galera cluster
	foldsNames bool // lower_case_table_names
	// logsCascades: the server itself, not the engine, follows foreign keys (MySQL 9.6).
	logsCascades bool
}

// Binlog is one file of SHOW BINARY LOGS.
type Binlog struct {
	Name string
	Size uint64
}

// identity tells two servers apart well enough to notice that an address led to
// another one.
func (s *Server) identity() string { return fmt.Sprintf("%s/%d/%s", s.UUID, s.ServerID, s.Version) }

// Name tells the servers of one source apart, as position.Position.Server has it
// and as it is shown: server_uuid, and on MariaDB server_id.
func (s *Server) Name() string {
	if s.UUID == "" {
		return "server_id " + strconv.FormatUint(uint64(s.ServerID), 10)
	}
	return s.UUID
}

// Inspect connects and asks the server about itself. It needs no right beyond
// connecting, except for Server.Purged of MariaDB.
func Inspect(ctx context.Context, cfg Config) (*Server, error) {
	s, err := onHost(ctx, cfg, func(s *session) (*Server, error) { return s.inspect() })
	return s, err
}

// Binlogs lists the server's binlog files, oldest first. It needs REPLICATION
// CLIENT (BINLOG MONITOR on MariaDB).
func Binlogs(ctx context.Context, cfg Config) ([]Binlog, error) {
	return onHost(ctx, cfg, func(s *session) ([]Binlog, error) { return s.binlogs() })
}

// Columns reads the columns of one table, none when it is not there or not visible. A
// table that can't be an outbox, such as a view, is an error.
func Columns(ctx context.Context, cfg Config, name schema.Name) ([]schema.ColumnInfo, error) {
	return onHost(ctx, cfg, func(s *session) ([]schema.ColumnInfo, error) {
		if err := s.suits(name); err != nil {
			return nil, err
		}
		return s.columns(name)
	})
}

// CurrentPosition is "now": everything that the server has committed is before it.
// With GTIDs on it is a GTID set, else a file and offset.
func CurrentPosition(ctx context.Context, cfg Config) (position.Position, error) {
	return onHost(ctx, cfg, func(s *session) (position.Position, error) {
		server, err := s.inspect()
		if err != nil {
			return position.Position{}, err
		}
		if server.LogBin == "OFF" {
			return position.Position{}, errNoBinlog()
		}
		p := position.Position{Flavor: server.Flavor, Server: server.Name()}
		file, pos, executed, err := s.binlogStatus(server)
		if err != nil {
			return p, err
		}
		p.File, p.Pos = file, pos
		switch {
		case server.Flavor == position.MariaDB:
			p.Set = server.Executed
		case server.GTIDMode == "ON":
			// In one go with file and offset, so that they are the same place.
			if p.Set, err = parseServerSet(position.MySQL, executed); err != nil {
				return p, err
			}
		}
		return p, cfg.movable(p)
	})
}

// EarliestPosition is the beginning of the oldest binlog that the server still has.
func EarliestPosition(ctx context.Context, cfg Config) (position.Position, error) {
	return onHost(ctx, cfg, func(s *session) (position.Position, error) {
		server, err := s.inspect()
		if err != nil {
			return position.Position{}, err
		}
		logs, err := s.binlogs()
		if err != nil {
			return position.Position{}, err
		}
		if server.LogBin == "OFF" || len(logs) == 0 {
			return position.Position{}, errNoBinlog()
		}
		p := position.Position{Flavor: server.Flavor, Server: server.Name(), File: logs[0].Name, Pos: 4}
		switch {
		case server.Flavor == position.MariaDB:
			p.Set, err = s.startOf(logs[0].Name)
		case server.GTIDMode == "ON":
			p.Set = server.Purged
		}
		if err != nil {
			return p, err
		}
		return p, cfg.movable(p)
	})
}

// movable refuses a position by file when there are several hosts.
func (c Config) movable(p position.Position) error {
	if len(c.Others) == 0 || p.HasGTID() {
		return nil
	}
	return newError(WrongMode, nil, "there are several hosts, and the position is a binlog file and offset, which are "+
		"one server's own; set gtid_mode=ON there, or name one host")
}

func errNoBinlog() error {
	return newError(WrongMode, nil, "the server writes no binlog (log_bin is OFF)")
}

func (s *session) inspect() (*Server, error) {
	out := &Server{Flavor: position.MySQL, Version: strings.Clone(s.conn.GetServerVersion()), GTIDMode: "ON"}
	if s.maria {
		out.Flavor = position.MariaDB
	}
	// Not SELECT @@x: which of them exist depends on the version.
	r, err := s.query("its settings", "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'server_id', "+
		"'server_uuid', 'gtid_mode', 'log_bin', "+
		"'binlog_format', 'binlog_row_image', 'binlog_row_metadata', 'binlog_row_value_options', "+
		"'read_only', 'super_read_only', 'sync_binlog', 'innodb_flush_log_at_trx_commit', 'binlog_expire_logs_seconds', "+
		"'expire_logs_days', "+
		"'log_slave_updates', 'gtid_strict_mode', 'log_replica_updates', 'wsrep_on', 'lower_case_table_names', "+
		"'innodb_native_foreign_keys')")
	if err != nil {
		return nil, err
	}
	if !s.maria {
		out.GTIDMode = "OFF"
	}
	for i := range r.RowNumber() {
		v := text(r, i, 1)
		switch strings.ToLower(text(r, i, 0)) {
		case "version":
			out.Version = v
		case "server_id":
			_, _ = fmt.Sscan(v, &out.ServerID)
		case "server_uuid":
			out.UUID = v
		case "gtid_mode":
			out.GTIDMode = v
		case "gtid_strict_mode":
			out.LooseGTIDs = !isOn(v)
		case "log_bin":
			out.LogBin = v
		case "binlog_format":
			out.BinlogFormat = v
		case "binlog_row_image":
			out.RowImage = v
		case "binlog_row_metadata":
			out.RowMetadata = v
		case "binlog_row_value_options":
			out.RowValueOption = v
		case "super_read_only":
			if isOn(v) {
				out.ReadOnly = "super_read_only"
			}
		case "read_only":
			if isOn(v) && out.ReadOnly == "" {
				out.ReadOnly = "read_only"
			}
		case "log_slave_updates", "log_replica_updates":
			out.LogReplicated = v
		case "innodb_native_foreign_keys":
			out.logsCascades = !isOn(v)
		case "wsrep_on":
			out.galera = isOn(v)
		case "lower_case_table_names":
			out.foldsNames = isOn(v)
		case "sync_binlog":
			out.SyncBinlog = v
		case "innodb_flush_log_at_trx_commit":
			out.FlushLog = v
		case "binlog_expire_logs_seconds":
			out.Retention = max(out.Retention, seconds(v, 1))
		case "expire_logs_days":
			out.Retention = max(out.Retention, seconds(v, 86400))
		}
	}
	return out, s.sets(out)
}

// isOn takes MariaDB's stages of read_only for ON, too.
func isOn(v string) bool { return v != "" && v != "0" && !strings.EqualFold(v, "OFF") }

// seconds reads a number of units, which may have decimals on MariaDB.
func seconds(v string, unit float64) time.Duration {
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n * unit * float64(time.Second))
}

// sets reads the GTID sets. SHOW VARIABLES would cut them at 1,024 characters.
func (s *session) sets(out *Server) error {
	if s.maria {
		// server_uuid of MariaDB, where it exists, is nothing that replication knows.
		out.UUID = ""
		v, err := s.value("gtid_binlog_pos", "SELECT @@GLOBAL.gtid_binlog_pos")
		if err != nil {
			return err
		}
		out.Executed, err = parseServerSet(position.MariaDB, v)
		return err
	}
	if out.GTIDMode == "OFF" && out.UUID == "" {
		return nil // before GTIDs
	}
	r, err := s.query("its GTID sets", "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged")
	if err != nil {
		return err
	}
	if r.RowNumber() == 0 {
		return nil
	}
	if out.Executed, err = parseServerSet(position.MySQL, text(r, 0, 0)); err != nil {
		return err
	}
	out.Purged, err = parseServerSet(position.MySQL, text(r, 0, 1))
	return err
}

// maxIntervals bounds the sets that a server has: each interval takes a hundred bytes when
// it is of a server of its own, and a set is copied and compared.
const maxIntervals = 1 << 17

func parseServerSet(f position.Flavor, v string) (*position.Set, error) {
	if n := strings.Count(v, ":") + strings.Count(v, ","); n > 2*maxIntervals {
		return nil, newError(TooLarge, nil, "the server has a GTID set of more than %d intervals", maxIntervals)
	}
	set, err := position.ParseSet(f, v)
	if err != nil {
		return nil, newError(ServerFailed, err, "reading the server's GTID set")
	}
	return set, nil
}

func (s *session) binlogs() ([]Binlog, error) {
	r, err := s.query("its binlogs", "SHOW BINARY LOGS")
	if err != nil {
		return nil, err
	}
	var logs []Binlog
	for i := range r.RowNumber() {
		size, _ := r.GetUint(i, 1)
		logs = append(logs, Binlog{Name: text(r, i, 0), Size: size})
	}
	return logs, nil
}

// sizeOf is how large a binlog is by now.
func (s *session) sizeOf(file string) (uint64, error) {
	logs, err := s.binlogs()
	if err != nil {
		return 0, err
	}
	for _, l := range logs {
		if l.Name == file {
			return l.Size, nil
		}
	}
	return 0, newError(ServerFailed, nil, "the server does not list %s, which it sends", file)
}

// startOf is the GTID position at which a binlog of MariaDB begins.
func (s *session) startOf(file string) (*position.Set, error) {
	v, err := s.gtidAt(file, 4)
	if err != nil {
		return nil, err
	}
	return parseServerSet(position.MariaDB, v)
}

// gtidAt is the GTID position at a place in a binlog of MariaDB; empty when there is
// no such place, too.
func (s *session) gtidAt(file string, pos uint64) (string, error) {
	return s.value("the GTID position in "+file, fmt.Sprintf("SELECT BINLOG_GTID_POS('%s', %d)", quoted(file), pos))
}

func quoted(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) }

// statusOfBinlog: MySQL 8.2 renamed the statement and 8.4 dropped the old name,
// MariaDB keeps it.
func (s *session) statusOfBinlog(server *Server) (r *mysql.Result, err error) {
	names := []string{"SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"}
	if s.maria || olderThan(server.Version, 8, 2) {
		names[0], names[1] = names[1], names[0]
	}
	for _, sql := range names {
		if r, err = s.execute(sql); err == nil || mysql.ErrorCode(err.Error()) != mysql.ER_PARSE_ERROR {
			break
		}
	}
	if err != nil {
		return nil, classify(err, Disconnected, "asking the server for its binlog status")
	}
	return r, nil
}

// binlogStatus is where the server writes its binlog, and on MySQL what it has executed.
func (s *session) binlogStatus(server *Server) (file string, pos uint64, executed string, err error) {
	r, err := s.statusOfBinlog(server)
	switch {
	case err != nil:
		return "", 0, "", err
	case r.Resultset == nil || r.RowNumber() == 0:
		return "", 0, "", errNoBinlog()
	}
	pos, _ = r.GetUint(0, 1)
	if r.ColumnNumber() > 4 {
		executed = text(r, 0, 4)
	}
	return text(r, 0, 0), pos, executed, nil
}

// reached is how far the server is; the zero position when it does not say.
func (s *session) reached(server *Server, byGTID bool) position.Position {
	var p position.Position
	if byGTID {
		now := Server{GTIDMode: server.GTIDMode, UUID: server.UUID}
		if err := s.sets(&now); err == nil {
			p.Set = now.Executed
		}
		return p
	}
	p.File, p.Pos, _, _ = s.binlogStatus(server) // without the right to see it nobody knows
	return p
}

func olderThan(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}

// ask asks for the columns of a table, and how far the server is.
func (s *session) ask(server *Server, name schema.Name, byGTID bool) (a asked, err error) {
	if a.columns, err = s.columns(name); err != nil || len(a.columns) == 0 {
		return a, err
	}
	if a.charset, a.databaseCharset, err = s.charsets(name); err != nil {
		return a, err
	}
	a.at = s.reached(server, byGTID)
	return a, nil
}

// ddlSource is what the server makes of statements.
func (s *Server) ddlSource() ddl.Source {
	var v [3]int
	_, _ = fmt.Sscanf(strings.TrimPrefix(s.Version, "5.5.5-"), "%d.%d.%d", &v[0], &v[1], &v[2])
	return ddl.Source{MariaDB: s.Flavor == position.MariaDB, Version: v[0]*10000 + v[1]*100 + v[2],
		FoldsNames: s.foldsNames}
}

// charsets are what columns of a table and tables of its database have by default; empty
// when the server does not tell.
func (s *session) charsets(name schema.Name) (table, database string, err error) {
	r, err := s.inUTF8("the character set of "+name.String(),
		"SELECT COALESCE(t.TABLE_COLLATION, ''), s.DEFAULT_CHARACTER_SET_NAME "+
			"FROM information_schema.SCHEMATA s LEFT JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = s.SCHEMA_NAME AND "+
			"t.TABLE_NAME = ? "+
			"WHERE s.SCHEMA_NAME = ?", name.Table, name.Database)
	if err != nil || r.RowNumber() == 0 {
		return "", "", err
	}
	table, _, _ = strings.Cut(text(r, 0, 0), "_")
	return utf8mb3(table), utf8mb3(text(r, 0, 1)), nil
}

// utf8mb3 undoes the alias of older servers.
func utf8mb3(charset string) string {
	if charset == "utf8" {
		return "utf8mb3"
	}
	return charset
}

func (s *session) columns(name schema.Name) ([]schema.ColumnInfo, error) {
	if err := s.showAll(); err != nil {
		return nil, err
	}
	r, err := s.inUTF8("the columns of "+name.String(), schema.ColumnsQuery, name.Database, name.Table)
	if err != nil {
		return nil, err
	}
	cols := make([]schema.ColumnInfo, r.RowNumber())
	for i := range cols {
		c := &cols[i]
		var errs [8]error
		var primary, nullable int64
		c.Name = text(r, i, 0)
		c.Position, errs[0] = intAt(r, i, 1)
		if null, _ := r.IsNull(i, 2); !null {
			def := text(r, i, 2)
			c.Default = &def
		}
		nullable, errs[1] = r.GetInt(i, 3)
		c.DataType, c.ColumnType = text(r, i, 4), text(r, i, 5)
		c.CharLength, errs[2] = r.GetUint(i, 6)
		c.Precision, errs[3] = intAt(r, i, 7)
		c.Scale, errs[4] = intAt(r, i, 8)
		c.FSP, errs[5] = intAt(r, i, 9)
		c.Charset, c.Extra = text(r, i, 10), text(r, i, 11)
		primary, errs[6] = r.GetInt(i, 12)
		c.KeyPosition, errs[7] = intAt(r, i, 13)
		c.ServerVersion = text(r, i, 14)
		c.Nullable, c.Primary = nullable != 0, primary != 0
		if err := errors.Join(errs[:]...); err != nil {
			return nil, newError(ServerFailed, err, "reading the columns of %s", name)
		}
	}
	if schema.NeedsShownDefaults(cols) {
		r, err := s.inUTF8("the defaults of "+name.String(),
			"SHOW CREATE TABLE "+quotedName(name.Database)+"."+quotedName(name.Table))
		if err != nil {
			return nil, err
		}
		schema.SetShownDefaults(cols, text(r, 0, 1))
	}
	return cols, nil
}

// showAll has information_schema tell of primary keys that the server has generated,
// which a setting may hide: the binlog holds them all the same.
func (s *session) showAll() error {
	if s.maria {
		return nil
	}
	_, err := s.execute("SET SESSION show_gipk_in_create_table_and_information_schema = ON")
	if err != nil && mysql.ErrorCode(err.Error()) != mysql.ER_UNKNOWN_SYSTEM_VARIABLE { // before 8.0.30
		return classify(err, Disconnected, "asking the server to show generated keys")
	}
	return nil
}

func intAt(r *mysql.Result, row, col int) (int, error) {
	v, err := r.GetInt(row, col)
	return int(v), err
}
