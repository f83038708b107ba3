package main

import (
	"context"
	"fmt"
)

// variant is the catch-up with one thing changed.
type variant struct {
	name       string
	what       string
	span       string
	partitions int32
	shape      shape
	alone      bool // only this program: what differs is Kafka's share
}

func (l *lab) variants() []variant {
	rows := l.size(200_000, 50_000)
	plain := shape{rows: rows, tables: 1, each: 1, size: payloadSize}
	return []variant{
		{"plain", "as above", "plain", partitions, plain, false},
		{"one-partition", "1 partition", "plain", 1, plain, true},
		{"fifty-partitions", "50 partitions", "plain", 50, plain, true},
		{"ten", "10 rows a transaction", "ten", partitions, shape{rows: rows, tables: 1, each: 10, size: payloadSize}, false},
		{"wide", "payload of 2,000 bytes", "wide", partitions, shape{rows: rows / 2, tables: 1, each: 1, size: 2000},
			l.quick},
		{"tables", "100 outbox tables, in turn", "tables", partitions, shape{rows: rows, tables: 100, each: 1,
			size: payloadSize}, l.quick},
	}
}

// shapeRounds is how often each variant is measured: the slower contestant takes the
// most of the time, and variants are many.
func (l *lab) shapeRounds() int { return min(l.rounds, 2) }

func prepareShapes(ctx context.Context, l *lab) error {
	for _, v := range l.variants() {
		if l.spans[v.span] != nil {
			continue
		}
		if _, err := l.write(ctx, l.mysql, v.span, v.shape); err != nil {
			return err
		}
	}
	return nil
}

func runShapes(ctx context.Context, l *lab) error {
	for _, v := range l.variants() {
		names := []string{oursExactly}
		if !v.alone {
			names = append(names, debTuned)
		}
		err := turns(l.shapeRounds(), l.field(names...), func(c contestant) error {
			return l.throughput(ctx, "shapes", v.name, c, l.spans[v.span], v.partitions)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", v.what, err)
		}
	}
	return nil
}

// throughput notes the rows a second from the first tenth of a span to its end, in
// which no start has a part.
func (l *lab) throughput(ctx context.Context, scenario, name string, c contestant, s *span, partitions int32) error {
	return l.race(ctx, c, s, true, s.rows, partitions, nil, func(ctx context.Context, _ *running, read *consumer) error {
		if err := read.wait(ctx, s.rows); err != nil {
			return err
		}
		// What came together with the row that made the tenth full was there before.
		from := read.noteOf(s.rows / 10)
		l.note(scenario, c, name, float64(s.rows-from.rows)/read.after(s.rows).Sub(from.at).Seconds())
		return nil
	})
}

func reportShapes(l *lab) string {
	var metrics []metric
	for _, v := range l.variants() {
		metrics = append(metrics, metric{v.name, v.what, 0, 1})
	}
	return fmt.Sprintf("## Other shapes\n\nThe same with one thing changed: rows/s from the first tenth of %d rows to "+
		"the last (half as many rows of 2,000 bytes), %d rounds.\n\n", l.variants()[0].shape.rows, l.shapeRounds()) +
		l.columns("shapes", []string{oursExactly, debTuned}, metrics)
}
