package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// shop writes orders and their events in one transaction, as a service would.
type shop struct {
	mysql   *servers.MySQL
	written map[string]bool // outbox ids of committed transactions
	n       int
}

var statements = []string{
	"CREATE DATABASE shop",
	`CREATE TABLE shop.orders (
		id BIGINT AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(64) NOT NULL, total DECIMAL(10,2) NOT NULL)`,
	`CREATE TABLE shop.outbox (
		id CHAR(36) PRIMARY KEY, aggregatetype VARCHAR(255) NOT NULL, aggregateid VARCHAR(255) NOT NULL,
		type VARCHAR(255) NOT NULL, payload JSON NOT NULL)`,
}

func newShop(ctx context.Context, m *servers.MySQL) (*shop, error) {
	if err := m.CreateCDCUser(ctx); err != nil {
		return nil, err
	}
	if err := m.Exec(ctx, statements...); err != nil {
		return nil, err
	}
	return &shop{mysql: m, written: map[string]bool{}}, nil
}

// takeOrders writes n orders. The first few are printed with the records that
// come of them, when out is not nil.
func (s *shop) takeOrders(ctx context.Context, n int, out io.Writer, r *reader) error {
	conn, err := s.mysql.Conn(ctx, "shop")
	if err != nil {
		return err
	}
	defer conn.Close()
	for range n {
		s.n++
		id := uuid.NewString()
		customer := fmt.Sprintf("customer-%d", s.n%7)
		total := fmt.Sprintf("%d.%02d", 10+s.n%90, s.n%100)
		payload := fmt.Sprintf(`{"orderId": %d, "customer": %q, "total": %s}`, s.n, customer, total)
		sql := []string{
			"BEGIN",
			fmt.Sprintf("INSERT INTO orders (customer, total) VALUES ('%s', %s)", customer, total),
			fmt.Sprintf("INSERT INTO outbox VALUES ('%s', 'order', '%s', 'OrderPlaced', '%s')", id, customer, payload),
			"COMMIT",
		}
		for _, q := range sql {
			if _, err := conn.Execute(q); err != nil {
				return fmt.Errorf("writing order %d: %w", s.n, err)
			}
		}
		s.written[id] = true
		if out != nil && s.n <= shown {
			for _, q := range sql {
				fmt.Fprintf(out, "   sql> %s;\n", q)
			}
			fmt.Fprintf(out, "        -> %s\n", r.describe(ctx, id))
		}
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
