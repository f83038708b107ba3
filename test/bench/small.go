package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// start: how soon the first of a few waiting rows is there.

func prepareStart(ctx context.Context, l *lab) error {
	_, err := l.write(ctx, l.mysql, "start", shape{rows: 20, tables: 1, each: 1, size: payloadSize})
	return err
}

func runStart(ctx context.Context, l *lab) error {
	s := l.spans["start"]
	return turns(l.rounds, l.field(oursExactly, oursAtLeast, debDefault), func(c contestant) error {
		return l.race(ctx, c, s, true, s.rows, partitions, nil, func(ctx context.Context, r *running, read *consumer) error {
			if err := read.wait(ctx, s.rows); err != nil {
				return err
			}
			l.note("start", c, "first", read.after(1).Sub(r.began).Seconds())
			return nil
		})
	})
}

func reportStart(l *lab) string {
	return "## First event\n\nSeconds from the start of the process to the first of 20 waiting rows at the consumer.\n\n" +
		l.table("start", []string{oursExactly, oursAtLeast, debDefault}, []metric{{"first", "seconds", 2, -1}})
}

// large: one transaction of a gigabyte.

const largeSize = 1000

func prepareLarge(ctx context.Context, l *lab) error {
	s, err := l.begin(ctx, l.mysql, "large", 1)
	if err != nil {
		return err
	}
	s.rows = l.size(1_000_000, 100_000)
	digits := []string{"a", "b", "c", "d", "e", "f"}[:len(fmt.Sprint(s.rows))-1]
	var from, number []string
	for i, d := range digits {
		from = append(from, "digits "+d)
		number = append(number, fmt.Sprintf("%s.d * 1%s", d, strings.Repeat("0", i)))
	}
	into, values, _ := strings.Cut(insert("outbox", "n", largeSize), " VALUES (")
	statement := fmt.Sprintf("%s SELECT %s FROM (SELECT 1 + %s AS n FROM %s) numbers", into,
		strings.TrimSuffix(values, ")"), strings.Join(number, " + "), strings.Join(from, ", "))
	return l.mysql.Exec(ctx, "USE "+s.database(), "CREATE TABLE digits (d INT)",
		"INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)", statement)
}

func runLarge(ctx context.Context, l *lab) error {
	s := l.spans["large"]
	return turns(1, l.field(oursExactly, oursAtLeast, debDefault), func(c contestant) error {
		return l.race(ctx, c, s, true, s.rows, partitions, nil, func(ctx context.Context, r *running, read *consumer) error {
			if err := read.wait(ctx, s.rows); err != nil {
				return err
			}
			used, err := usageOf(r.pid)
			if err != nil {
				return err
			}
			l.note("large", c, "time", read.after(s.rows).Sub(r.began).Seconds())
			l.note("large", c, "peak", float64(used.peak)/(1<<20))
			return nil
		})
	})
}

func reportLarge(l *lab) string {
	return fmt.Sprintf("## One large transaction\n\n%d outbox rows of %d bytes in one transaction, one round.\n\n",
		l.spans["large"].rows, largeSize) +
		l.table("large", []string{oursExactly, oursAtLeast, debDefault}, []metric{{"time",
			"seconds from process start to last row", 1, -1}, {"peak", "peak resident, MiB", 0, -1}})
}

// gtids: a position of many servers and gaps.

const (
	manyUUIDs     = 500
	manyIntervals = 20
)

func prepareGTIDs(ctx context.Context, l *lab) error {
	many, err := l.startMySQL(ctx, "mysql-gtids")
	if err != nil {
		return err
	}
	var set strings.Builder
	for range manyUUIDs {
		fmt.Fprintf(&set, "%s", uuid.NewString())
		for i := range manyIntervals {
			fmt.Fprintf(&set, ":%d-%d", 10*i+1, 10*i+5)
		}
		set.WriteByte(',')
	}
	if err := many.Exec(ctx, "SET GLOBAL gtid_purged = '+"+strings.TrimSuffix(set.String(), ",")+"'"); err != nil {
		return err
	}
	of := shape{rows: l.size(200_000, 50_000), tables: 1, each: 1, size: payloadSize}
	if _, err := l.write(ctx, many, "gtids", of); err != nil {
		return err
	}
	if l.spans["plain"] == nil {
		_, err = l.write(ctx, l.mysql, "plain", of)
	}
	return err
}

func runGTIDs(ctx context.Context, l *lab) error {
	for _, name := range []string{"plain", "gtids"} {
		err := turns(l.rounds, l.field(oursExactly, oursAtLeast), func(c contestant) error {
			return l.throughput(ctx, "gtids", name, c, l.spans[name], partitions)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func reportGTIDs(l *lab) string {
	return fmt.Sprintf("## A large GTID set\n\nCatch-up as under other shapes, with a position of one server and with "+
		"one of %d servers with %d intervals each.\n\n", manyUUIDs, manyIntervals) +
		l.table("gtids", []string{oursExactly, oursAtLeast}, []metric{{"plain", "rows/s, one server", 0, 0},
			{"gtids", "rows/s, large set", 0, 0}})
}
