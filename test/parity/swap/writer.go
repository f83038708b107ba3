package swap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Schema makes the tables: the outbox, and one that is none.
var Schema = []string{
	"CREATE DATABASE shop",
	"CREATE TABLE shop.outbox (id VARCHAR(40) PRIMARY KEY, aggregatetype VARCHAR(40) NOT NULL, aggregateid " +
		"VARCHAR(40) NOT NULL, type VARCHAR(40), payload VARCHAR(500))",
	"CREATE TABLE shop.notes (id BIGINT AUTO_INCREMENT PRIMARY KEY, text VARCHAR(500))",
}

const (
	statementRows = 400 // that one INSERT has at the most
	maxRows       = 10_000
)

// writer writes transactions of both tables on one connection, so that its rows are in the
// order of their numbers.
type writer struct {
	db     *servers.MySQL
	random *rand.Rand
	rows   int // written so far, and committed
	largest,
	transactions int
}

func id(n int) string { return fmt.Sprintf("row-%07d", n) }

// write writes until ctx ends, and the transaction that it is in to its end, with pauses up
// to pause: with longer ones Debezium keeps up, and is stopped between transactions.
func (w *writer) write(ctx context.Context, pause time.Duration) error {
	c, err := w.db.Conn(context.Background(), "shop")
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		for _, statement := range w.transaction() {
			if _, err := c.Execute(statement); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		time.Sleep(time.Duration(w.random.Int64N(int64(pause))))
	}
	return nil
}

// transaction is one with 1 to maxRows outbox rows, most of them small, or none.
func (w *writer) transaction() []string {
	var out []string
	if w.db.Flavor() == "mysql" {
		out = append(out, fmt.Sprintf("SET SESSION binlog_transaction_compression=%d, SESSION "+
			"binlog_rows_query_log_events=%d", w.random.IntN(2), w.random.IntN(2)))
	}
	left := 0
	switch w.random.IntN(10) {
	case 0:
		left = 1 + w.random.IntN(maxRows)
	case 1, 2:
		left = 1 + w.random.IntN(500)
	case 3:
	default:
		left = 1 + w.random.IntN(3)
	}
	w.transactions++
	w.largest = max(w.largest, left)
	out = append(out, "BEGIN")
	for first := true; first || left > 0; first = false {
		if w.random.IntN(2) == 0 || left == 0 {
			out = append(out, "INSERT INTO notes (text) VALUES ('a'), (REPEAT('b', 400))")
		}
		if left == 0 {
			break
		}
		n := min(left, 1+w.random.IntN(statementRows))
		left -= n
		out = append(out, w.insert(n))
		if w.random.IntN(4) == 0 {
			out = append(out, "UPDATE outbox SET type='changed' WHERE id='"+id(w.rows)+"'", "DELETE FROM outbox WHERE "+
				"id='"+id(w.rows)+"'")
		}
	}
	return append(out, "COMMIT")
}

func (w *writer) insert(n int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ")
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		w.rows++
		fmt.Fprintf(&b, "('%s','order','%d','created','%s')", id(w.rows), w.rows%5, strings.Repeat("x", w.random.IntN(200)))
	}
	return b.String()
}
