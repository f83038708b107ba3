package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// Server is what a shop needs of a database server: where it is, and an account
// that may do everything.
type Server interface {
	Addr() string
	User() string
	Password() string
}

// answerTimeout ends a connection on which the server has gone silent. The
// longest statements take a few seconds.
const answerTimeout = 2 * time.Minute

func dial(ctx context.Context, server Server, database string) (*client.Conn, error) {
	return client.ConnectWithContext(ctx, server.Addr(), server.User(), server.Password(), database, 5*time.Second,
		func(c *client.Conn) error {
			c.ReadTimeout, c.WriteTimeout = answerTimeout, answerTimeout
			if err := c.SetCapability(mysql.CLIENT_MULTI_STATEMENTS); err != nil {
				return err
			}
			return c.SetCollation("utf8mb4_general_ci") // both flavours have it
		})
}

// Shop is one database with an outbox. Only one goroutine may use a Shop at a
// time, except for Noise, Exec and KillWriter, which may run beside Write.
type Shop struct {
	server  Server
	options Options
	next    uint64 // number of the next session
	journal []*history.Txn
	live    *sessions
	// quick are the numbers of the sessions that have no ledger rows, as four hex
	// digits: so they stand in the ids.
	quick []string
	// counters are the places in the commit order given out to quick writers, by
	// partition. Each element has one writer.
	counters []uint64
}

// Options say what a shop is like.
type Options struct {
	Database   string
	Aggregate  string // value of aggregatetype, which names the topic
	Partitions int32  // of that topic
	Keys       int32  // number of aggregates
	Seed       uint64 // of all that is random
}

// Side is a table like the outbox, with rows that no check looks at.
const Side = "outbox_side"

// Create drops the database if there is one and makes it new.
func Create(ctx context.Context, server Server, o Options) (*Shop, error) {
	s := &Shop{server: server, options: o, live: newSessions(), counters: make([]uint64, o.Partitions)}
	statements := []string{
		"DROP DATABASE IF EXISTS " + o.Database,
		"CREATE DATABASE " + o.Database + " DEFAULT CHARACTER SET utf8mb4",
		"USE " + o.Database,
		`CREATE TABLE outbox (
			id CHAR(36) NOT NULL PRIMARY KEY,
			aggregatetype VARCHAR(255) NOT NULL,
			aggregateid VARCHAR(255) NOT NULL,
			type VARCHAR(255) NOT NULL,
			payload LONGTEXT NOT NULL,
			created_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))`,
		"CREATE TABLE " + Side + " LIKE outbox",
		"CREATE TABLE counters (p INT NOT NULL PRIMARY KEY, n BIGINT UNSIGNED NOT NULL)",
		"CREATE TABLE ledger (txn BIGINT UNSIGNED NOT NULL, p INT NOT NULL, seq BIGINT UNSIGNED NOT NULL, PRIMARY KEY " +
			"(txn, p))",
		"CREATE TABLE orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(64), total DECIMAL(10,2), " +
			"changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3))",
		"CREATE TABLE noise (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a VARCHAR(64), b DOUBLE, c DATETIME)",
		"CREATE TABLE digits (d INT NOT NULL PRIMARY KEY)",
		"INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
	}
	for p := range o.Partitions {
		statements = append(statements, fmt.Sprintf("INSERT INTO counters VALUES (%d, 0)", p))
	}
	if err := s.Exec(ctx, statements...); err != nil {
		return nil, fmt.Errorf("creating database %s: %w", o.Database, err)
	}
	return s, nil
}

// Exec runs statements one after the other on a connection of their own.
func (s *Shop) Exec(ctx context.Context, statements ...string) (err error) {
	database := s.options.Database
	if strings.HasPrefix(statements[0], "DROP DATABASE") {
		database = "" // from Create: it may not be there
	}
	conn, err := dial(ctx, s.server, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Quit()) }()
	for _, statement := range statements {
		if _, err := conn.Execute(statement); err != nil {
			return fmt.Errorf("running %.80q: %w", statement, err)
		}
	}
	return nil
}

func (s *Shop) allPartitions() []int32 {
	all := make([]int32, s.options.Partitions)
	for p := range all {
		all[p] = int32(p)
	}
	return all
}

// count gives out the next place in the commit order of a partition.
func (s *Shop) count(partition int32) uint64 {
	s.counters[partition]++
	return s.counters[partition]
}

func (s *Shop) readCounters(ctx context.Context) (err error) {
	conn, err := dial(ctx, s.server, s.options.Database)
	if err != nil {
		return fmt.Errorf("reading the counters: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Quit()) }()
	r, err := conn.Execute("SELECT p, n FROM counters")
	if err != nil {
		return fmt.Errorf("reading the counters: %w", err)
	}
	for _, row := range r.Values {
		s.counters[row[0].AsInt64()] = row[1].AsUint64()
	}
	return nil
}

func (s *Shop) writeCounters(ctx context.Context, partitions []int32) error {
	statements := make([]string, len(partitions))
	for i, p := range partitions {
		statements[i] = fmt.Sprintf("UPDATE counters SET n = %d WHERE p = %d", s.counters[p], p)
	}
	return s.Exec(ctx, statements...)
}

// noiseRows is what one noise transaction inserts.
const noiseRows = 10_000

// Noise inserts rows (rounded up to 10,000) into another table of the shop, in
// transactions of 10,000.
func (s *Shop) Noise(ctx context.Context, rows int) error {
	statements := make([]string, 0, rows/noiseRows+1)
	for n := 0; n < rows; n += noiseRows {
		statements = append(statements, `INSERT INTO noise (a, b, c)
			SELECT CONCAT('not for the outbox, row ', e.d, f.d, g.d, h.d), e.d * 1.5, NOW() FROM digits e, digits f, digits g, digits h`)
	}
	return s.Exec(ctx, statements...)
}

// Journal returns what was written so far; the slice is the shop's.
func (s *Shop) Journal() []*history.Txn { return s.journal }

// Rows returns how many rows the journal's transactions leave if all that are not
// rolled back commit.
func (s *Shop) Rows() (n int) {
	for _, t := range s.journal {
		if t.Outcome != history.RolledBack {
			n += int(t.Rows)
			if t.UndoneFrom > 0 {
				n -= int(t.UndoneTo - t.UndoneFrom + 1)
			}
		}
	}
	return n
}

// Settle waits until no writer's connection is left on the server, so that no
// outcome is open, and returns the ledger.
func (s *Shop) Settle(ctx context.Context) (_ []history.LedgerRow, err error) {
	conn, err := dial(ctx, s.server, s.options.Database)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Quit()) }()
	for {
		r, err := conn.Execute("SELECT COUNT(*) FROM information_schema.processlist WHERE db = '" + s.options.Database +
			"' AND id <> CONNECTION_ID()")
		if err != nil {
			return nil, fmt.Errorf("looking for writers: %w", err)
		}
		n, err := r.GetInt(0, 0)
		if err != nil {
			return nil, fmt.Errorf("looking for writers: %w", err)
		}
		if n == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %d writers to be gone: %w", n, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	ledger, err := readLedger(conn)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	quick, err := s.readQuick(conn)
	if err != nil {
		return nil, fmt.Errorf("reading the outbox: %w", err)
	}
	return append(ledger, quick...), nil
}

func readLedger(conn *client.Conn) (ledger []history.LedgerRow, err error) {
	var result mysql.Result
	err = conn.ExecuteSelectStreaming("SELECT txn, p, seq FROM ledger", &result, func(row []mysql.FieldValue) error {
		ledger = append(ledger, history.LedgerRow{Txn: row[0].AsUint64(), Partition: int32(row[1].AsInt64()),
			Seq: row[2].AsUint64()})
		return nil
	}, nil)
	return ledger, err
}

// readQuick makes ledger rows of what the quick writers left in the outbox.
func (s *Shop) readQuick(conn *client.Conn) (ledger []history.LedgerRow, err error) {
	if len(s.quick) == 0 {
		return nil, nil
	}
	query := "SELECT id, aggregateid, SUBSTRING_INDEX(SUBSTRING_INDEX(LEFT(payload, 100), ' key=', 1), 'seq=', -1) FROM " +
		"outbox WHERE " +
		"SUBSTR(id, 25, 4) IN ('" + strings.Join(s.quick, "','") + "')"
	var result mysql.Result
	err = conn.ExecuteSelectStreaming(query, &result, func(row []mysql.FieldValue) error {
		r, err := history.ParseID(string(row[0].AsString()))
		if err != nil {
			return err
		}
		seq, err := strconv.ParseUint(string(row[2].AsString()), 10, 64)
		if err != nil {
			return err
		}
		partition := history.PartitionOf(row[1].AsString(), s.options.Partitions)
		ledger = append(ledger, history.LedgerRow{Txn: r.Txn, Partition: partition, Seq: seq})
		return nil
	}, nil)
	return ledger, err
}

// KillWriter kills the connection of one of the writers that run, if any does, so
// that the outcome of what it was about is known to the ledger alone.
func (s *Shop) KillWriter(ctx context.Context) error {
	id := s.live.any()
	if id == 0 {
		return nil
	}
	err := s.Exec(ctx, "KILL "+strconv.FormatUint(uint64(id), 10))
	var gone *mysql.MyError
	if errors.As(err, &gone) && gone.Code == mysql.ER_NO_SUCH_THREAD {
		return nil
	}
	return err
}
