package canal

import (
	"context"
	"log/slog"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Scan reads the binlog right after from until all of to is read, and hands each
// transaction to f, until that wants no more. The zero to has no end. Status says how far
// the reading has come. At is the place before the first transaction that f has not let
// pass: where to begin so as to get it.
//
// It is for a look at the source beside a connector at work, and leaves no trace: it logs
// nothing, has no metrics, decides nothing about lost transactions, and reads no rows from
// tables. cfg needs a ServerID and a SpoolDir of its own. The binlog is opened in any case,
// so that Scan from a place to that place tells whether it may be read.
//
// f is called by the caller's goroutine and owns what it gets; its error ends the scan and
// is returned as it is. Other errors are as those of Open and Stream.Next.
func Scan(
	ctx context.Context, cfg Config, from, to position.Position,
	f func(tx *txn.Transaction, read Status) (more bool, err error),
) (at position.Position, err error) {
	at = from
	cfg = cfg.traceless()
	stream, err := Open(ctx, cfg, from)
	if err != nil {
		return at, err
	}
	defer stream.Close() //nolint:errcheck // nothing was written
	reached := func() bool { return !to.IsZero() && at.Covers(to) }
	for !reached() {
		txs, err := stream.Next(ctx)
		if err != nil {
			return at, err
		}
		for i := range txs {
			if txs[i].Commit.OnlyColumns() {
				at.Advance(txs[i].Commit)
				continue
			}
			if more, err := f(&txs[i], stream.Status()); err != nil || !more {
				return at, err
			}
			if !txs[i].Final {
				continue
			}
			if at.Advance(txs[i].Commit); reached() {
				break
			}
		}
	}
	return at, nil
}

// traceless is the configuration of a stream that is only looked at: nothing of it is
// logged, counted or decided.
func (cfg Config) traceless() Config {
	cfg.Logger, cfg.Metrics = slog.New(slog.DiscardHandler), nil
	cfg.Progress, cfg.OnLostTransactions, cfg.SnapshotOnly = nil, nil, false
	return cfg
}
