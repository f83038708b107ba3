package e2e

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// The main job on each kind of source: everything that a shop does with its
// database, and each row in Kafka once, in order, byte for byte.

func TestUndisturbedMySQLGTID(t *testing.T) {
	undisturbed(t, play{server: mysqlGTID(t), positions: "gtid", rowMetadata: "FULL"}, 10)
}

func TestUndisturbedMySQLFile(t *testing.T) {
	undisturbed(t, play{server: mysqlFile(t), positions: "file"}, 10)
}

func TestUndisturbedMariaDBGTID(t *testing.T) {
	undisturbed(t, play{server: mariadb(t), positions: "gtid", rowMetadata: "FULL"}, 0)
}

func TestUndisturbedMariaDBFile(t *testing.T) {
	undisturbed(t, play{server: mariadb(t), positions: "file"}, 0)
}

// undisturbed writes, all at once: 200,000 single-row transactions; transactions
// of several rows, some rolled back, some undone in part, some compressed, some
// with rows of another table, some that delete their rows again; 1,000,000 rows of
// another table; DDL on other tables; rotations. Then, together with more of the
// mixed ones: a new column in the middle of the outbox table, and transactions of
// 10,000 rows.
func undisturbed(t *testing.T, p play, compressed int) {
	t.Helper()
	s := newStage(t, p)
	s.start()
	mixed := workload.Load{
		PerSecond: 300, Writers: 2, Batch: 3, MaxRows: 5, Size: 300,
		RolledBack: 5, Savepoint: 10, Compressed: compressed, Foreign: 20, Tidy: 10,
	}
	s.together(mixed, []int32{4, 5}, func(ctx context.Context) error {
		return s.shop.Write(ctx, workload.Load{
			Transactions: scaled(t, 200_000), Writers: 3, Batch: 50, Quick: true, Size: 200, Partitions: []int32{0, 1, 2, 3},
		})
	}, func(ctx context.Context) error {
		return s.shop.Noise(ctx, scaled(t, 1_000_000))
	}, func(ctx context.Context) error {
		return s.every(ctx, 500*time.Millisecond,
			"CREATE TABLE passing (id INT PRIMARY KEY)", "FLUSH BINARY LOGS", "ALTER TABLE orders ADD COLUMN remark VARCHAR(20)",
			"DROP TABLE passing", "FLUSH BINARY LOGS", "ALTER TABLE orders DROP COLUMN remark")
	})
	s.together(mixed, []int32{0, 1, 2, 3, 4, 5}, func(ctx context.Context) error {
		for range 5 {
			if err := s.shop.WriteOne(ctx, scaled(t, 10_000), 200, 50); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		return s.every(ctx, 300*time.Millisecond,
			"FLUSH BINARY LOGS", "ALTER TABLE outbox ADD COLUMN note VARCHAR(40) NULL AFTER aggregatetype", "FLUSH BINARY LOGS")
	})
	s.finish(history.ExactlyOnce)
}

// together runs the load until all of the others are done.
func (s *stage) together(load workload.Load, partitions []int32, others ...func(context.Context) error) {
	s.t.Helper()
	load.Partitions = partitions
	from := time.Now()
	group, ctx := errgroup.WithContext(s.t.Context())
	background, stop := context.WithCancel(ctx)
	defer stop()
	var work errgroup.Group
	for _, f := range others {
		work.Go(func() error { return f(ctx) })
	}
	group.Go(func() error { return s.shop.Write(background, load) })
	group.Go(func() error {
		defer stop()
		return work.Wait()
	})
	if err := group.Wait(); err != nil {
		s.t.Fatal(err)
	}
	_, read := s.tail.Rows()
	s.t.Logf("%d transactions in the journal after %v more; %d records read so far",
		len(s.shop.Journal()), time.Since(from).Round(time.Millisecond), read)
}

// every runs the statements in turn, one each interval.
func (s *stage) every(ctx context.Context, interval time.Duration, statements ...string) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for _, statement := range statements {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := s.shop.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
