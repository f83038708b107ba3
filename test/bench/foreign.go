package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const mysqlbinlog = "mysqlbinlog --raw"

// foreignSpans are binlog files full of rows of a table that is no outbox, between
// one outbox row at the start and one at the end.
func foreignSpans() []string { return []string{"single", "bulk"} }

func prepareForeign(ctx context.Context, l *lab) error {
	for _, name := range foreignSpans() {
		if err := l.mysql.Exec(ctx, "FLUSH BINARY LOGS"); err != nil {
			return err
		}
		s, err := l.begin(ctx, l.mysql, name, 1)
		if err != nil {
			return err
		}
		s.rows = 2
		statements := []string{
			"USE " + s.database(), "CREATE TABLE noise (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a VARCHAR(255))",
			"CREATE TABLE digits (d INT)", "INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)",
			"CREATE PROCEDURE single(n INT) BEGIN WHILE n > 0 DO INSERT INTO noise (a) VALUES (REPEAT('x', 250)); SET n = n - " +
				"1; END WHILE; END",
			"CREATE PROCEDURE bulk(n INT) BEGIN WHILE n > 0 DO INSERT INTO noise (a) SELECT REPEAT('x', 250) FROM digits a, " +
				"digits b, digits c, digits d; SET n = n - 1; END WHILE; END",
			insert("outbox", "1", payloadSize),
		}
		if err := l.mysql.Exec(ctx, statements...); err != nil {
			return err
		}
		times := l.size(600_000, 120_000)
		if name == "bulk" {
			times = l.size(360, 72) // of 10,000 rows
		}
		g, gctx := errgroup.WithContext(ctx)
		for range writers {
			g.Go(func() error {
				return l.mysql.Exec(gctx, "USE "+s.database(), fmt.Sprintf("CALL %s(%d)", name, times/writers))
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := l.mysql.Exec(ctx, "USE "+s.database(), insert("outbox", "2", payloadSize),
			"FLUSH BINARY LOGS"); err != nil {
			return err
		}
	}
	return nil
}

// fileSize is how large the span's binlog file is. It must be the only one.
func (s *span) fileSize(ctx context.Context) (int64, error) {
	logs, err := s.server.Query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		return 0, err
	}
	for i := range logs.Values {
		if name, err := logs.GetString(i, 0); err != nil || name != s.file {
			continue
		}
		return logs.GetInt(i, 1)
	}
	return 0, fmt.Errorf("the server has no binlog %s", s.file)
}

func runForeign(ctx context.Context, l *lab) error {
	for _, name := range foreignSpans() {
		s := l.spans[name]
		size, err := s.fileSize(ctx)
		if err != nil {
			return err
		}
		mb := float64(size) / 1e6
		l.noteFor("foreign", "", name+" size", mb)
		field := append(l.field(oursExactly, oursAtLeast, debDefault), contestant{name: mysqlbinlog})
		err = turns(l.rounds, field, func(c contestant) error {
			if c.name == mysqlbinlog {
				took, err := l.copyBinlog(ctx, s)
				l.note("foreign", c, name, mb/took.Seconds())
				return err
			}
			return l.race(ctx, c, s, true, s.rows, partitions, nil, func(ctx context.Context, _ *running, read *consumer) error {
				if err := read.wait(ctx, s.rows); err != nil {
					return err
				}
				l.note("foreign", c, name, mb/read.after(2).Sub(read.after(1)).Seconds())
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// copyBinlog lets MySQL's own client copy the file of a span.
func (l *lab) copyBinlog(ctx context.Context, s *span) (time.Duration, error) {
	dir := filepath.Join(l.dir, "copied")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	cmd := s.server.Tool(ctx, "mysqlbinlog", "--raw", "--read-from-remote-server", "--host="+s.server.Host(),
		fmt.Sprintf("--port=%d", s.server.Port()),
		"--user="+s.server.User(), "--result-file="+dir+"/", s.file)
	if cmd == nil {
		return 0, fmt.Errorf("mysqlbinlog comes with servers that are started here only")
	}
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("mysqlbinlog: %w: %s", err, out)
	}
	took := time.Since(began)
	copied, err := os.Stat(filepath.Join(dir, s.file))
	if err != nil {
		return 0, err
	}
	size, err := s.fileSize(ctx)
	if err != nil {
		return 0, err
	}
	if copied.Size() != size {
		return 0, fmt.Errorf("mysqlbinlog copied %d bytes of %d", copied.Size(), size)
	}
	return took, nil
}

func reportForeign(l *lab) string {
	return fmt.Sprintf("## Passing over foreign rows\n\nA binlog file of %.0f MB with transactions of one row of 250 "+
		"bytes, and one of %.0f MB with transactions of 10,000 of them, all of a table that is no outbox, "+
		"between one outbox row at the start and one at the end. MB/s between the arrivals of the two; for `%s` of the "+
		"whole copy over the same network protocol. \n\n",
		l.results.median("foreign", "", "single size"), l.results.median("foreign", "", "bulk size"), mysqlbinlog) +
		l.table("foreign", []string{oursExactly, oursAtLeast, debDefault, mysqlbinlog},
			[]metric{{"single", "MB/s, one-row transactions", 0, 1}, {"bulk", "MB/s, bulk", 0, 1}})
}
