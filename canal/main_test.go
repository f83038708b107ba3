package canal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// pool holds one server per flavor for all tests of the package.
var pool servers.Pool

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

// patience is far more than anything here takes.
const patience = 30 * time.Second

// flavors runs a test on a real MySQL and a real MariaDB.
func flavors(t *testing.T, f func(t *testing.T, db *database)) {
	t.Run("MySQL", func(t *testing.T) { f(t, newDatabase(t, pool.MySQL(t))) })
	t.Run("MariaDB", func(t *testing.T) { f(t, newDatabase(t, pool.MariaDB(t))) })
}

// database is a database of its own on a shared server, with an outbox table.
type database struct {
	*servers.MySQL
	t    *testing.T
	name string
	conn *client.Conn
	cfg  canal.Config
}

const outboxDDL = "CREATE TABLE outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL " +
	"DEFAULT 'Order', " +
	"aggregateid VARCHAR(255), type VARCHAR(255), payload LONGTEXT)"

func newDatabase(t *testing.T, s *servers.MySQL) *database {
	t.Helper()
	db := &database{MySQL: s, t: t, name: "t" + strings.Map(alnum, strings.ToLower(t.Name()))}
	if len(db.name) > 60 {
		db.name = db.name[:60]
	}
	db.conn = db.connect("")
	db.exec("DROP DATABASE IF EXISTS "+db.name, "CREATE DATABASE "+db.name+" CHARACTER SET utf8mb4", "USE "+db.name,
		outboxDDL,
		"CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, note LONGTEXT)")
	db.cfg = canal.Config{
		Host: s.Host(), Port: s.Port(), User: s.User(), Password: s.Password(), ServerID: serverID(t), SpoolDir: t.TempDir(),
		Tables: canal.Tables{Match: func(d, tab string) (bool, error) { return d == db.name && tab == "outbox", nil }},
	}
	return db
}

func alnum(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return -1
}

// serverID gives each test a replica id of its own.
func serverID(t *testing.T) uint32 {
	h := uint32(2166136261)
	for _, c := range []byte(t.Name()) {
		h = (h ^ uint32(c)) * 16777619
	}
	return h%1_000_000_000 + 1_000_000
}

func (db *database) isMaria() bool { return db.Flavor() == "mariadb" }

func (db *database) connect(name string) *client.Conn {
	db.t.Helper()
	c, err := db.Conn(db.t.Context(), name)
	if err != nil {
		db.t.Fatal(err)
	}
	db.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (db *database) exec(statements ...string) {
	db.t.Helper()
	execOn(db.t, db.conn, statements...)
}

func execOn(t *testing.T, c *client.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.Execute(s); err != nil {
			t.Fatalf("%.200s: %v", s, err)
		}
	}
}

func (db *database) now() position.Position {
	db.t.Helper()
	p, err := canal.CurrentPosition(db.t.Context(), db.cfg)
	if err != nil {
		db.t.Fatal(err)
	}
	return p
}

// known is now, with the columns of the outbox table.
func (db *database) known() position.Position {
	db.t.Helper()
	r := db.open(db.now())
	defer r.Close()
	for r.at.Columns == "" {
		if err := r.step(); err != nil {
			db.t.Fatal(err)
		}
	}
	return r.at
}

func (db *database) open(from position.Position) *reading {
	db.t.Helper()
	s, err := canal.Open(db.t.Context(), db.cfg, from)
	if err != nil {
		db.t.Fatal(err)
	}
	db.t.Cleanup(func() { _ = s.Close() })
	return &reading{t: db.t, Stream: s, at: from}
}

// reading collects what a stream hands on.
type reading struct {
	*canal.Stream
	t   *testing.T
	at  position.Position
	all []txn.Transaction
}

func (r *reading) step() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	got, err := r.Next(ctx)
	for _, t := range got {
		r.all = append(r.all, t)
		if t.Final {
			r.at.Advance(t.Commit)
		}
	}
	return err
}

// until reads until a row has this id.
func (r *reading) until(id int64) *reading {
	r.t.Helper()
	for seen := 0; ; {
		for ; seen < len(r.all); seen++ {
			for _, row := range r.all[seen].Rows {
				if row.After[0] == id {
					return r
				}
			}
		}
		if err := r.step(); err != nil {
			r.t.Fatalf("waiting for row %d, after rows %.200s: %v", id, r.rows(), err)
		}
	}
}

// rows lists the ids in order.
func (r *reading) rows() string {
	var ids []string
	for _, t := range r.all {
		for _, row := range t.Rows {
			ids = append(ids, fmt.Sprint(row.After[0]))
		}
	}
	return strings.Join(ids, " ")
}

// transactions lists the ids of each transaction that has any.
func (r *reading) transactions() string {
	var parts []string
	for _, t := range r.all {
		var ids []string
		for _, row := range t.Rows {
			ids = append(ids, fmt.Sprint(row.After[0]))
		}
		if ids != nil {
			parts = append(parts, fmt.Sprint(ids))
		}
	}
	return strings.Join(parts, " ")
}

// fails reads on until the stream ends, and returns why.
func (r *reading) fails() *canal.Error {
	r.t.Helper()
	for {
		err := r.step()
		var e *canal.Error
		switch {
		case err == nil:
		case errors.As(err, &e):
			return e
		default:
			r.t.Fatalf("after rows %.200s: %v", r.rows(), err)
		}
	}
}
