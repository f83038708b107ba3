package canal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Tables says which tables are outbox tables.
type Tables struct {
	// Match decides by the names as the server spells them. It must be pure: its
	// answer is remembered for the life of the stream.
	Match func(database, table string) bool
	// List names the tables as configured, for checks before the start; a
	// matcher of patterns may leave it empty.
	List []schema.Name
}

// Config says where to read and how. The zero value of every optional field
// means its default.
type Config struct {
	Host     string
	Port     int // default 3306
	User     string
	Password string
	TLS      *tls.Config // nil means no TLS

	// ServerID identifies this reader among all replicas of the source; it must
	// differ from each of them.
	ServerID uint32
	// Flavor of the source; empty asks the server.
	Flavor position.Flavor

	Tables Tables
	// Needed returns the indexes of the columns that a row image of this table
	// must hold. It is called once for each shape. Nil means all columns.
	Needed func(*schema.Table) []int

	// Heartbeat is the period at which an idle server is asked to send a sign of
	// life; default 10 s. After 2.5 periods of silence the connection is given up.
	Heartbeat time.Duration
	// ConnectTimeout bounds each step of connecting and each metadata query;
	// default 10 s.
	ConnectTimeout time.Duration

	// QueueBytes bounds the decoded transactions that wait for Next; default
	// 8 MiB. A full queue stops the reading. One transaction is always let in.
	QueueBytes int
	// SpoolThreshold is how many bytes of outbox row events of one open
	// transaction are held in memory; default 64 MiB. Beyond it they go to a
	// file below SpoolDir until the commit is seen.
	SpoolThreshold int64
	// SpoolDir is for this stream alone; default os.TempDir()/binlog-outbox-spool-<server id>.
	// What an earlier process left there is removed by Open.
	SpoolDir string
	// PartRows is the largest number of rows that one Transaction holds; default
	// 50,000. Larger transactions are handed on in parts.
	PartRows int
	// PartBytes bounds the parts of a spooled transaction; default 8 MiB.
	PartBytes int
	// MaxUncompressed bounds what one compressed transaction may inflate to;
	// default 16 GiB. It protects from hostile or broken servers, not from large
	// transactions, which are walked as a stream.
	MaxUncompressed int64

	// Dialer makes all connections; nil means net.Dialer.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger gets state changes and warnings; nil means none. Payloads,
	// statements and passwords are never logged.
	Logger *slog.Logger
	// Metrics gets the stream's numbers while it is open; nil means none.
	Metrics *Metrics
}

const (
	defaultHeartbeat       = 10 * time.Second
	defaultConnectTimeout  = 10 * time.Second
	defaultQueueBytes      = 8 << 20
	defaultSpoolThreshold  = 64 << 20
	defaultPartRows        = 50_000
	defaultPartBytes       = 8 << 20
	defaultMaxUncompressed = 16 << 30
)

// withDefaults returns the configuration with all defaults filled in.
func (c Config) withDefaults() Config {
	c.Port = cmp.Or(c.Port, 3306)
	c.Heartbeat = cmp.Or(c.Heartbeat, defaultHeartbeat)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.SpoolThreshold = cmp.Or(c.SpoolThreshold, int64(defaultSpoolThreshold))
	c.SpoolDir = cmp.Or(c.SpoolDir, fmt.Sprintf("%s/binlog-outbox-spool-%d", os.TempDir(), c.ServerID))
	c.PartRows = cmp.Or(c.PartRows, defaultPartRows)
	c.PartBytes = cmp.Or(c.PartBytes, defaultPartBytes)
	c.MaxUncompressed = cmp.Or(c.MaxUncompressed, int64(defaultMaxUncompressed))
	if c.Dialer == nil {
		c.Dialer = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate reports all problems at once.
func (c Config) validate() error {
	var errs []error
	bad := func(cond bool, msg string) {
		if cond {
			errs = append(errs, errors.New(msg))
		}
	}
	bad(c.Host == "", "no host")
	bad(c.Port < 1 || c.Port > 65535, "the port must be 1 to 65535")
	bad(c.ServerID == 0, "server id 0 is not allowed")
	bad(c.Tables.Match == nil, "no outbox tables")
	bad(c.Flavor != "" && c.Flavor != position.MySQL && c.Flavor != position.MariaDB, "the flavor must be mysql or mariadb")
	bad(c.Heartbeat < time.Millisecond, "the heartbeat must be at least 1 ms")
	bad(c.ConnectTimeout < 0 || c.QueueBytes < 0 || c.SpoolThreshold < 0 || c.PartRows < 0 || c.PartBytes < 0 || c.MaxUncompressed < 0,
		"limits and timeouts must not be negative")
	return errors.Join(errs...)
}

// readTimeout is how long the server may be silent: two heartbeats may be lost.
func (c Config) readTimeout() time.Duration { return c.Heartbeat * 5 / 2 }

func (c Config) address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

// tls returns the TLS settings with the server's name filled in.
func (c Config) tls() *tls.Config {
	if c.TLS == nil || c.TLS.ServerName != "" || c.TLS.InsecureSkipVerify {
		return c.TLS
	}
	t := c.TLS.Clone()
	t.ServerName = c.Host
	return t
}
