package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// TestInitialRows kills the connector with -9 five times while it publishes the rows
// that stand in two tables at the start, and while rows are inserted and deleted. The
// keys of one table count up, those of the other are in no order.
func TestSnapshotRowsMySQL(t *testing.T) {
	initialRows(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
}

func TestSnapshotRowsMariaDB(t *testing.T) {
	initialRows(t, play{server: mariadb(t), delivery: "exactly_once"})
}

func TestSnapshotRowsAtLeastOnce(t *testing.T) {
	initialRows(t, play{server: mysqlGTID(t), delivery: "at_least_once"})
}

const (
	initialKills = 5
	initialKeys  = 50
	initialStood = 100_000 // rows of each table at the start
	// initialMemory is what the connector may have resident while the tables are far
	// larger.
	initialMemory = 256 << 20
)

func initialRows(t *testing.T, p play) {
	t.Helper()
	kafka := theLab.broker(t)
	name := strings.ToLower(t.Name())
	dir := filepath.Join(theLab.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, play: p, config: filepath.Join(dir, "node.yaml"), log: filepath.Join(dir, "connector.log"),
		data: filepath.Join(dir, "data"), topic: name + ".a"}
	b := &initialShop{t: t, conn: connectTo(t, p.server, ""), stood: scaled(t, initialStood)}
	b.create(name)
	text := fmt.Sprintf(`node: {id: e2e, data_dir: %q}
admin: {listen: "127.0.0.1:0"}
log: {format: json}
connectors:
  - name: %s
    source: {host: %s, port: %d, user: %s, password: %s, tables: [initialshop.ordered, initialshop.shuffled], start: snapshot}
    outbox: {route_topic: "%s.${routedByValue}"}
    kafka:
      brokers: [%q]
      delivery: %s
      create_topics: {partitions: %d, replication_factor: 1}
`, s.data, name, p.server.Host(), p.server.Port(), servers.CDCUser, servers.CDCPassword, name, kafka.Addr(), s.delivery(), partitions)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tail, err := harness.StartTail(t.Context(), []string{kafka.Addr()}, s.topic)
	if err != nil {
		t.Fatal(err)
	}
	s.tail = tail
	t.Cleanup(s.close)
	s.start()
	// The start is known once its position is stored; what comes before it is initial.
	s.await("the snapshot rows have begun", time.Minute,
		func(c harness.ConnectorStatus) bool { return c.Phase == "snapshot rows" })
	stop := b.writeOn(p.server)
	inMiddle := 0
	for n := range initialKills {
		goal := uint64(2*b.stood) * uint64(n+1) / (initialKills + 2)
		c := s.await("some snapshot rows are published", 2*time.Minute, func(c harness.ConnectorStatus) bool {
			return c.Phase == "streaming" || c.Phase == "snapshot rows" && c.Position.Initial != nil &&
				c.Position.Initial.Rows >= goal
		})
		if c.Phase == "snapshot rows" {
			inMiddle++
		}
		s.kill()
		s.start()
	}
	// A short run may be over before the last kills.
	if inMiddle < 1 || inMiddle < 3 && b.stood == initialStood {
		t.Errorf("only %d of %d kills hit the snapshot rows", inMiddle, initialKills)
	}
	s.await("all snapshot rows are published", 5*time.Minute,
		func(c harness.ConnectorStatus) bool { return c.Phase == "streaming" })
	inserted := stop()
	b.check(s, kafka.Addr(), name, inserted)
	s.notePeak()
	s.terminate()
	t.Logf("%d snapshot rows and %d later ones, %d of %d kills among the snapshot rows; at most %d MB resident", 2*b.stood,
		inserted, inMiddle, initialKills, s.peak>>20)
	if s.peak > initialMemory {
		t.Errorf("%d MB were resident", s.peak>>20)
	}
}

// initialShop has two outbox tables. The payload is the number of the row, from 0 in
// each table.
type initialShop struct {
	t     *testing.T
	conn  *client.Conn
	stood int // rows of each table at the start
}

func connectTo(t *testing.T, server *servers.MySQL, database string) *client.Conn {
	t.Helper()
	c, err := server.Conn(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (b *initialShop) create(name string) {
	b.t.Helper()
	do := []string{"DROP DATABASE IF EXISTS initialshop", "CREATE DATABASE initialshop CHARACTER SET utf8mb4",
		"USE initialshop",
		"CREATE TABLE ordered (id BIGINT AUTO_INCREMENT PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid " +
			"VARCHAR(20) NOT NULL, payload VARCHAR(20) NOT NULL, filling VARCHAR(200), KEY (payload))",
		"CREATE TABLE shuffled (id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(20) NOT NULL, aggregateid VARCHAR(20) NOT " +
			"NULL, payload VARCHAR(20) NOT NULL, filling VARCHAR(200), KEY (payload))"}
	for n := 0; n < b.stood; n += 2000 {
		to := min(n+2000, b.stood)
		do = append(do, b.insert("ordered", n, to), b.insert("shuffled", n, to))
	}
	for _, sql := range do {
		if _, err := b.conn.Execute(sql); err != nil {
			b.t.Fatalf("%.200s: %v", sql, err)
		}
	}
}

func (b *initialShop) insert(table string, from, to int) string {
	rows := make([]string, 0, to-from)
	for n := from; n < to; n++ {
		id := "NULL"
		if table == "shuffled" {
			id = fmt.Sprintf("LEFT(SHA2('%d', 256), 36)", n)
		}
		rows = append(rows, fmt.Sprintf("(%s, '%s', 'k%d', '%d', REPEAT('x', 150))", id, table, n%initialKeys, n))
	}
	return "INSERT INTO " + table + " VALUES " + strings.Join(rows, ",")
}

// writeOn inserts rows into both tables, and deletes old and new ones, until the
// returned function is called, which returns how many were inserted.
func (b *initialShop) writeOn(server *servers.MySQL) (stop func() int) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var writers sync.WaitGroup
	counts := make([]int, 2)
	for i, table := range []string{"ordered", "shuffled"} {
		conn := connectTo(b.t, server, "initialshop")
		writers.Go(func() {
			for n := b.stood; ctx.Err() == nil; n++ {
				// The oldest, the youngest of those that stood there, and one just inserted.
				old := n - b.stood
				for _, sql := range []string{
					b.insert(table, n, n+1),
					fmt.Sprintf("DELETE FROM %s WHERE payload IN ('%d', '%d', '%d')", table, old*7%b.stood, max(0, b.stood-1-old*3),
						n-5),
				} {
					if _, err := conn.Execute(sql); err != nil {
						b.t.Errorf("%.100s: %v", sql, err)
						return
					}
				}
				counts[i]++
				time.Sleep(time.Millisecond)
			}
		})
	}
	return func() int {
		cancel()
		writers.Wait()
		return counts[0] + counts[1]
	}
}

// check reads the topics until each row has come, and checks that with exactly-once
// none came twice, and the order: in the table whose keys count up, rows of one
// aggregate come in the order of their insertion, and in the other one those that
// were inserted later do.
func (b *initialShop) check(s *stage, broker, name string, inserted int) {
	b.t.Helper()
	want := 2*b.stood + inserted
	exactly := s.delivery() == "exactly_once"
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*time.Minute)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(name+".ordered", name+".shuffled"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	seen, last := map[string]int{}, map[string]int{}
	twice, wrong := 0, 0
	quiet := time.Now()
	for len(seen) < want || time.Since(quiet) < 2*time.Second {
		if err := ctx.Err(); err != nil {
			b.t.Fatalf("%d of %d rows came", len(seen), want)
		}
		poll, done := context.WithTimeout(ctx, time.Second)
		fetches := c.PollFetches(poll)
		done()
		fetches.EachRecord(func(r *kgo.Record) {
			quiet = time.Now()
			row := r.Topic + string(r.Value)
			if seen[row]++; seen[row] > 1 {
				twice++
				return
			}
			var n int
			if _, err := fmt.Sscan(string(r.Value), &n); err != nil {
				b.t.Errorf("value %.40q: %v", r.Value, err)
			}
			key := r.Topic + string(r.Key)
			if before, ok := last[key]; ok && n < before && (strings.HasSuffix(r.Topic, ".ordered") || before >= b.stood) {
				wrong++
			}
			last[key] = n
		})
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			b.t.Logf("reading: %v", err)
		}
	}
	if len(seen) != want || exactly && twice > 0 || wrong > 0 {
		b.t.Errorf("%d different rows of %d, %d repetitions, %d out of order", len(seen), want, twice, wrong)
	}
}
