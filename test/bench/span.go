package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// span is a stretch of one server's binlog with outbox rows in a database of its own.
// Their payloads number them from 1 to rows.
type span struct {
	name   string
	server *servers.MySQL
	rows   int

	// Where it begins.
	file  string
	pos   uint64
	gtids string
	seed  string // data directory of this program with that position
}

// writers is how many connections write a span.
const writers = 4

// shape says what rows a span has.
type shape struct {
	rows   int
	tables int // outbox tables, written in turn
	each   int // rows of a transaction
	size   int // bytes of a payload
}

func (s *span) database() string { return "bench_" + s.name }

// pattern is the regular expression of the span's outbox tables.
func (s *span) pattern() string { return s.database() + `\.outbox.*` }

// begin makes the database of a span and notes where the binlog is.
func (l *lab) begin(ctx context.Context, server *servers.MySQL, name string, tables int) (*span, error) {
	s := &span{name: name, server: server}
	statements := []string{"CREATE DATABASE " + s.database(), "USE " + s.database()}
	for i := range tables {
		statements = append(statements, "CREATE TABLE "+outboxTable(i)+` (
			id CHAR(36) NOT NULL PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL, aggregateid VARCHAR(255) NOT NULL,
			type VARCHAR(255) NOT NULL, payload JSON)`)
	}
	if err := server.Exec(ctx, statements...); err != nil {
		return nil, err
	}
	result, err := server.Query(ctx, "SHOW BINARY LOG STATUS")
	if err != nil {
		return nil, err
	}
	if s.file, err = result.GetString(0, 0); err != nil {
		return nil, err
	}
	if s.pos, err = result.GetUint(0, 1); err != nil {
		return nil, err
	}
	if s.gtids, err = result.GetString(0, 4); err != nil {
		return nil, err
	}
	s.gtids = strings.ReplaceAll(s.gtids, "\n", "")
	if err := l.seed(ctx, s); err != nil {
		return nil, fmt.Errorf("seeding %s: %w", name, err)
	}
	l.spans[name] = s
	return s, nil
}

func outboxTable(i int) string {
	if i == 0 {
		return "outbox"
	}
	return fmt.Sprintf("outbox_%02d", i)
}

// write begins a span and fills it with rows.
func (l *lab) write(ctx context.Context, server *servers.MySQL, name string, of shape) (*span, error) {
	s, err := l.begin(ctx, server, name, of.tables)
	if err != nil {
		return nil, err
	}
	block := max(of.tables, of.each)
	s.rows = of.rows / (block * writers) * (block * writers)
	if err := server.Exec(ctx, "USE "+s.database(), fillProcedure(of)); err != nil {
		return nil, err
	}
	share := s.rows / writers
	g, ctx := errgroup.WithContext(ctx)
	for i := range writers {
		g.Go(func() error {
			return server.Exec(ctx, "USE "+s.database(), fmt.Sprintf("CALL fill(%d, %d)", i*share+1, (i+1)*share))
		})
	}
	return s, g.Wait()
}

// fillProcedure makes a procedure that writes the rows of numbers in a range: it
// saves sending and parsing each statement.
func fillProcedure(of shape) string {
	var b strings.Builder
	b.WriteString("CREATE PROCEDURE fill(first INT, last INT) BEGIN DECLARE n INT DEFAULT first; WHILE n <= last DO ")
	if of.each > 1 {
		b.WriteString("START TRANSACTION; ")
	}
	for i := range max(of.tables, of.each) {
		fmt.Fprintf(&b, "%s; SET n = n + 1; ", insert(outboxTable(i%of.tables), "n", of.size))
	}
	if of.each > 1 {
		b.WriteString("COMMIT; ")
	}
	b.WriteString("END WHILE; END")
	return b.String()
}

// insert is a statement that writes the row of a number, which is SQL. Its payload
// is a JSON document of about size bytes.
func insert(table, n string, size int) string {
	const order = `,"customer":"customer-17","total":129.95,"lines":[{"sku":"AB-1001","count":2,"price":49.95},{"sku":"CD-2002","count":1,"price":30.05}],"note":"`
	return fmt.Sprintf("INSERT INTO %s (id, aggregatetype, aggregateid, type, payload) VALUES "+
		"(CONCAT('00000000-0000-4000-8000-', LPAD(HEX(%[2]s), 12, '0')), 'order', CONCAT('customer-', MOD(%[2]s, 1000)), "+
		"'OrderPlaced', "+
		`CONCAT('{"n":', %[2]s, '%[3]s', '%[4]s"}'))`, table, n, order, strings.Repeat("x", max(0, size-len(order)-15)))
}
