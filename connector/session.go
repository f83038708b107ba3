package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// session is one attempt to work: it lives until its contexts end or anything fails,
// and nothing in it is repaired.
type session struct {
	*Connector
	number uint64
	log    *slog.Logger
	pipe   *pipe
	saver  *saver
	taken  *readSet

	// takeover is set for the first session of a leadership, which opens the source
	// while the sink opens.
	takeover bool
	early    *ahead

	// at is where the connector is for certain, owned by the publishing goroutine.
	at position.Position

	unpublishedLog unpublishedLog
}

// run does one session. It returns nil when stop ended and all that had been read
// was published and saved. leadership ends everything at once.
func (t *session) run(drain, leadership context.Context) (err error) {
	t.setPhase("opening sink")
	sink, err := t.sinks.NewSink(t.number)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(leadership), t.cfg.CloseTimeout)
		defer cancel()
		if e := sink.Close(ctx); e != nil {
			t.log.Warn("closing the sink", "error", e)
		}
	}()
	open, cancel := either(drain, leadership)
	defer cancel()
	if t.takeover {
		t.early = t.openAhead(open)
		defer t.early.drop()
	}
	began := time.Now()
	from, err := t.openAt(open, sink)
	if err != nil {
		return err
	}
	phases := sinkPhases(sink, time.Since(began))
	t.setPhase(openingSource)
	began = time.Now()
	source, from, err := t.openSource(open, sink, from)
	if err != nil {
		return err
	}
	defer func() {
		if e := source.Close(); e != nil {
			t.log.Warn("closing the source", "error", e)
		}
	}()
	status := source.Status()
	from = onServer(from, status.Server.Name())
	errorHandler, err := t.newErrorHandler()
	if err != nil {
		return err
	}
	t.streaming(source, from, append(phases, Phase{"source", time.Since(began)}))
	defer t.streamEnded()
	t.pipe.onError = errorHandler

	t.at = from
	g, ctx := errgroup.WithContext(leadership)
	g.Go(func() error { return t.saver.run(leadership) })
	g.Go(func() error { return t.read(ctx, drain, source, from) })
	g.Go(func() error {
		defer t.saver.finish()
		return t.publish(ctx, sink)
	})
	return g.Wait()
}

// openSource opens the source at from, or takes the one that was opened there ahead.
// It may be that the connector is to begin anew instead.
func (t *session) openSource(
	ctx context.Context, sink Sink, from position.Position,
) (Source, position.Position, error) {
	source, ok, err := t.early.take(from)
	if !ok {
		source, err = t.sources.Open(ctx, from)
	}
	var anew *BeginAnew
	if !errors.As(err, &anew) {
		return source, from, err
	}
	return t.beginAnew(ctx, sink, from, anew.Err)
}

// beginAnew makes the configured start the connector's position.
func (t *session) beginAnew(ctx context.Context, sink Sink, from position.Position,
	why error) (Source, position.Position, error) {
	start, err := t.sources.Start(ctx)
	if err != nil {
		return nil, from, err
	}
	t.log.Warn("beginning anew: what was published before comes again as far as it stands in the tables, what was "+
		"deleted meanwhile is lost",
		"reason", why, "before", from.String(), "position", start.String())
	start.Seq, start.OffsetOverride, start.InKafka = from.Seq, from.OffsetOverride, t.sinks.KeepsPosition()
	// The sink first: the replicated position is never ahead of it.
	if _, err := sink.Commit(ctx, &txn.Batch{Position: start}); err != nil {
		return nil, from, err
	}
	if !start.InKafka {
		start.Seq += position.SeqGap
		if err := t.positions.SavePosition(ctx, start); err != nil {
			return nil, from, fmt.Errorf("storing where to begin anew: %w", err)
		}
	}
	source, err := t.sources.Open(ctx, start)
	return source, start, err
}

// sinkPhases are the steps of opening a sink, as far as it tells them.
func sinkPhases(sink Sink, took time.Duration) []Phase {
	s, ok := sink.(interface{ Timings() []kafka.Timing })
	if !ok {
		return []Phase{{"sink", took}}
	}
	var out []Phase
	for _, t := range s.Timings() {
		out = append(out, Phase{t.Step, t.Took})
	}
	return out
}

// onServer moves a position to another server, whose files and offsets are not
// known yet.
func onServer(p position.Position, server string) position.Position {
	if p.Server != "" && p.Server != server && p.HasGTID() && !p.Set.IsEmpty() {
		p.File, p.Pos = "", 0
	}
	p.Server = server
	return p
}

// openAt opens the sink and decides where to begin: at what the sink has made
// durable, else at the replicated position, else at the configured start, which
// is stored before the first row is read. A position that an operator has set
// counts before what the sink has made durable until then; the first batch after
// it makes it the sink's own.
func (t *session) openAt(ctx context.Context, sink Sink) (position.Position, error) {
	sunk, inSink, err := sink.Open(ctx)
	if err != nil {
		return position.Position{}, err
	}
	stored, inStore := t.positions.Begin(t.number)
	from, ok := stored, inStore
	if t.sinks.KeepsPosition() {
		from, ok, err = reconcile(sunk, inSink, stored, inStore)
	}
	if err != nil || ok {
		return from, err
	}
	t.early.drop() // sources do one thing at a time
	t.setPhase("finding the start")
	before := from
	from, err = t.sources.Start(ctx)
	if err != nil {
		return position.Position{}, err
	}
	// An operator may have told it to start over: it goes on counting its records.
	from.Seq, from.OffsetOverride = before.Seq, before.OffsetOverride
	t.log.Info("starting for the first time", "position", from.String())
	if err := t.positions.SavePosition(ctx, from); err != nil {
		return position.Position{}, fmt.Errorf("storing the first position: %w", err)
	}
	return from, nil
}

// reconcile compares what the sink has made durable with the replicated position.
// ok is false when there is neither, or an operator wants the connector to start over.
//
// What Kafka committed together with the rows counts: the replicated position is
// written after it. It is a tripwire, though: if it says that Kafka committed more
// than Kafka knows, then Kafka has lost it (the topic was deleted or made anew, an
// unclean election), or is another cluster, and going on from either may repeat or
// lose rows. Only what was written without Kafka, by at-least-once delivery or by
// an operator, may be further than Kafka's or alone.
//
// An operator's choice counts before Kafka's position until Kafka holds one that
// comes from it. When Kafka's comes from a later choice than the store knows of, the
// store has been lost or restored, and a choice that was made in it before anything
// could show that is not obeyed blindly.
func reconcile(sunk position.Position, inSink bool, stored position.Position,
	inStore bool) (from position.Position, ok bool, err error) {
	sunk.InKafka = true
	missing := &PositionError{Sink: sunk, Missing: !inSink, Stored: stored}
	// Whichever counts, no number of a published row is given again.
	stored.Seq = max(stored.Seq, sunk.Seq)
	sunk.Seq = stored.Seq
	switch {
	case stored.OffsetOverride > sunk.OffsetOverride && !stored.InKafka:
		return stored, inStore, nil
	case stored.OffsetOverride != sunk.OffsetOverride && stored.OffsetOverride != 0 && !stored.InKafka:
		return from, false, missing
	case !inStore:
		return sunk, inSink, nil
	case stored.OffsetOverride > sunk.OffsetOverride:
		return from, false, missing
	case inSink && sunk.Covers(stored):
		return sunk, true, nil
	case stored.InKafka || sunk.OffsetOverride > stored.OffsetOverride:
		return from, false, missing
	case !inSink || stored.Covers(sunk):
		return stored, true, nil
	default:
		return from, false, missing
	}
}

// read moves transactions from the source into the pipe until drain ends or
// anything fails; what was read before the end is still published.
func (t *session) read(ctx, drain context.Context, source Source, from position.Position) error {
	reading, cancel := either(drain, ctx)
	defer cancel()
	err := t.readAll(reading, source, from)
	if drain.Err() != nil {
		err = nil // an orderly end, whatever the source said about being cut
	}
	t.pipe.close(err)
	return nil // the publisher returns the cause, after it has drained
}

func (t *session) readAll(ctx context.Context, source Source, from position.Position) error {
	done := publishedAt(from)
	for {
		txs, err := source.Next(ctx)
		if err != nil {
			return err
		}
		for i := range txs {
			g := txs[i].Commit.GTID
			if err := t.pipe.add(ctx, &txs[i], done[g]); err != nil {
				return err
			}
			if txs[i].Final && !txs[i].Commit.OnlyColumns() {
				delete(done, g)
			}
		}
		t.taken.add(txs)
	}
}

// publish commits batch after batch until the pipe is closed and drained.
func (t *session) publish(ctx context.Context, sink Sink) error {
	heartbeats := t.newHeartbeats()
	tick := time.NewTicker(heartbeats.interval(t.sinks.IdleCommit()))
	defer tick.Stop()
	for {
		b, done, err := t.pipe.take(ctx, tick.C)
		if err != nil || done {
			return err
		}
		if b != nil {
			if err := t.commit(ctx, sink, b); err != nil {
				return err
			}
			t.pipe.put(b)
		} else if tender, ok := sink.(Tender); ok {
			if err := tender.Tend(ctx); err != nil {
				return fmt.Errorf("looking after what was published: %w", err)
			}
		}
		if err := heartbeats.send(ctx, t, sink); err != nil {
			return err
		}
	}
}

func (t *session) commit(ctx context.Context, sink Sink, b *batch) error {
	next, err := t.over(b.Groups)
	if err != nil {
		return err
	}
	b.Position = next
	started := time.Now()
	done, err := sink.Commit(ctx, &b.Batch)
	if err != nil {
		err = blame(err, b)
		if done == 0 {
			return err
		}
		next, _ = t.over(b.Groups[:done]) // what goes for all goes for some
	} else {
		done = len(b.Groups)
	}
	t.at, t.remembered = next, int64(next.Seq)
	t.saver.advance(next)
	t.published(b, done, started)
	if err == nil && !t.sinks.KeepsPosition() {
		t.saver.awaitFirst(ctx) // or a session that is cut off early repeats much more than one batch
	}
	return err
}

// over returns where the connector is when groups are durable, too.
func (t *session) over(groups []txn.Group) (position.Position, error) {
	next, err := txn.Over(t.at, groups)
	next.InKafka = t.sinks.KeepsPosition()
	return next, err
}

// either returns a context that ends with the first of two. Values and the cause
// come from hard when both ended.
func either(drain, work context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(work)
	unlink := context.AfterFunc(drain, func() { cancel(context.Cause(drain)) })
	return ctx, func() { unlink(); cancel(context.Canceled) }
}

var _ Source = (*canal.Stream)(nil)
