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

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// Tables says which tables are outbox tables.
type Tables struct {
	// Match decides by the names as the server spells them. It must be pure: its
	// answer is remembered for the life of the stream. An error ends it.
	Match func(database, table string) (bool, error)
	// List names the tables as configured, for checks before the start; a
	// matcher of patterns may leave it empty.
	List []schema.Name
}

func (t Tables) matches(n schema.Name) (bool, error) {
	matches, err := t.Match(n.Database, n.Table)
	if err != nil {
		return false, newError(BadConfig, err, "whether a table is an outbox table can't be told")
	}
	return matches, nil
}

// Config says where to read and how. The zero value of every optional field
// means its default.
type Config struct {
	Host     string
	Port     int // default 3306
	User     string
	Password string
	TLS      *tls.Config // nil means no TLS
	// TLSOptional goes on without TLS when the server does not offer it.
	TLSOptional bool
	// Others are more addresses (host:port) of the same source: the members of its
	// replication group. A host name that stands for several addresses counts as
	// several hosts too. Which of them is read from is decided at each opening; a
	// position by file is refused then, since it is good for one server only.
	Others []string
	// Prefer is the address to take if several would do: Status.Address of the
	// stream before.
	Prefer string
	// PrimaryOnly refuses servers that are read-only when there are several hosts.
	// Without it one that takes writes is preferred.
	PrimaryOnly bool
	// RoleCheck is how often, with several hosts, the server that is read from is
	// asked whether it still takes writes; default 3 s, negative never.
	RoleCheck time.Duration

	// ServerID identifies this reader among all replicas of the source; it must
	// differ from each of them.
	ServerID uint32
	// Flavor of the source; empty asks the server.
	Flavor position.Flavor

	Tables Tables
	// Needed returns the indexes of the columns that a row image of this table
	// must hold. It is called once for each shape. Nil means all columns.
	Needed func(*schema.Table) []int
	// InvalidText says what is done with text that is not valid in its character set;
	// nil stops the stream there.
	InvalidText *schema.InvalidText

	// Origins tells the server UUIDs whose transactions count; nil means all. Rows of
	// other origins are not handed on, and whether the server has purged or lacks
	// their transactions does not matter. It must be pure. MySQL only.
	Origins func(source uuid.UUID) (bool, error)
	// OnLostTransactions is called when the server lacks transactions of other servers that
	// the position has: a failed primary's last ones that no other server got. Nil
	// refuses to go on with LostTransactions. Its error ends the opening. What it accepts is
	// to be in Accepted at later openings. server is the one that lacks them (its
	// server_uuid). MySQL only.
	OnLostTransactions func(ctx context.Context, lost *position.Set, server string) error
	// Accepted are the lost transactions accepted at earlier openings; nil means none.
	Accepted *position.Set
	// Progress is told what an opening is at; nil means nobody.
	Progress func(step string)

	// Updates asks for the updated rows of outbox tables too, with both images and
	// the primary key among the columns that are read. Without it they are counted
	// and passed over, as partial updates of JSON columns always are.
	Updates bool
	// RefusePartialUpdates stops the stream at a partial update, and at any in a prepared
	// XA transaction: what can't be read, or not at its place, can't be refused later on.
	RefusePartialUpdates bool

	// watermark reads for those who look for what has become of rows: deleted rows come
	// too, and heartbeats in quick succession tell the place that is reached.
	watermark *watermark
	// tally looks for a place.
	tally *tally
	// toEnd asks for the binlog up to its present end.
	toEnd bool

	// SnapshotOnly ends with the rows that stood in the tables at the start: nothing
	// is streamed after them.
	SnapshotOnly bool

	// Heartbeat is the period at which an idle server is asked to send a sign of
	// life; default 10 s. After 2.5 periods of silence the connection is given up, but
	// before the first event only when the server does not answer otherwise either.
	Heartbeat time.Duration
	// ConnectTimeout bounds the dial, the login, and the wait for the answer to each
	// metadata query, all of which may take six times as long; default 10 s.
	ConnectTimeout time.Duration

	// QueueBytes bounds the decoded transactions that wait for Next; default
	// 2 MiB. A full queue stops the reading. One transaction is always let in.
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
	// default 16 GiB. One event has 1 GiB at the most, as on servers. It protects from hostile or
	// broken servers, not from large
	// transactions, which are walked as a stream.
	MaxUncompressed int64

	// Dialer makes all connections; nil means net.Dialer.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup resolves host names; nil means net.DefaultResolver.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Logger gets state changes and warnings; nil means none. Payloads,
	// statements and passwords are never logged.
	Logger *slog.Logger
	// Metrics gets the stream's numbers while it is open; nil means none.
	Metrics *Metrics
}

const (
	defaultHeartbeat       = 10 * time.Second
	defaultConnectTimeout  = 10 * time.Second
	defaultRoleCheck       = 3 * time.Second
	defaultQueueBytes      = 2 << 20
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
	c.RoleCheck = cmp.Or(c.RoleCheck, defaultRoleCheck)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.SpoolThreshold = cmp.Or(c.SpoolThreshold, int64(defaultSpoolThreshold))
	c.SpoolDir = cmp.Or(c.SpoolDir, fmt.Sprintf("%s/binlog-outbox-spool-%d", os.TempDir(), c.ServerID))
	c.PartRows = cmp.Or(c.PartRows, defaultPartRows)
	c.PartBytes = cmp.Or(c.PartBytes, defaultPartBytes)
	c.MaxUncompressed = cmp.Or(c.MaxUncompressed, int64(defaultMaxUncompressed))
	if c.Dialer == nil {
		c.Dialer = (&net.Dialer{}).DialContext
	}
	if c.Lookup == nil {
		c.Lookup = net.DefaultResolver.LookupHost
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
	for _, other := range c.Others {
		_, port, err := net.SplitHostPort(other)
		n, e := strconv.Atoi(port)
		bad(err != nil || e != nil || n < 1 || n > 65535, "an address must be host:port")
	}
	bad(c.ServerID == 0, "server id 0 is not allowed")
	bad(c.Tables.Match == nil, "no outbox tables")
	bad(c.Flavor != "" && c.Flavor != position.MySQL && c.Flavor != position.MariaDB,
		"the flavor must be mysql or mariadb")
	bad(c.Heartbeat < time.Millisecond, "the heartbeat must be at least 1 ms")
	bad(c.ConnectTimeout < 0 || c.QueueBytes < 0 || c.SpoolThreshold < 0 || c.PartRows < 0 || c.PartBytes < 0 ||
		c.MaxUncompressed < 0,
		"limits and timeouts must not be negative")
	return errors.Join(errs...)
}

// readTimeout is how long the server may be silent: two heartbeats may be lost.
func (c Config) readTimeout() time.Duration {
	if c.watermark != nil {
		return max(c.Heartbeat, defaultHeartbeat) * 5 / 2
	}
	return c.Heartbeat * 5 / 2
}

func (c Config) address() string { return net.JoinHostPort(c.Host, strconv.Itoa(c.Port)) }

func (c Config) progress(step string) {
	if c.Progress != nil {
		c.Progress(step)
	}
}

// counts reports whether transactions of this origin count.
// counts takes what can't be decided for yes; decidable has refused it before.
func (c Config) counts(origin uuid.UUID) bool {
	if c.Origins == nil {
		return true
	}
	counts, err := c.Origins(origin)
	return counts || err != nil
}

// decidable holds Origins against all servers of the sets.
func (c Config) decidable(sets ...*position.Set) error {
	for _, set := range sets {
		for _, id := range set.Sources() {
			if _, err := c.Origins(id); err != nil {
				return newError(BadConfig, err, "whether transactions of server %s count can't be told", id)
			}
		}
	}
	return nil
}

// tls returns the TLS settings with the server's name filled in.
func (c Config) tls() *tls.Config {
	if c.TLS == nil || c.TLS.ServerName != "" || c.TLS.InsecureSkipVerify {
		return c.TLS
	}
	t := c.TLS.Clone()
	t.ServerName = c.Host
	return t
}
