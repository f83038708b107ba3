package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// Load says what Write writes.
type Load struct {
	// Transactions is how many in all; 0: until the context ends.
	Transactions int
	// PerSecond limits the transactions a second; 0: as fast as it goes.
	PerSecond int
	// Writers is the number of connections, Batch the number of transactions that
	// each sends at once.
	Writers, Batch int
	// Partitions are those that rows may go to; nil: all.
	Partitions []int32
	// Quick asks for transactions of one row and one statement, the most a server
	// can do in a second. Each writer has partitions of its own, so that it knows
	// the commit order there without a counter, and the outbox itself is the
	// ledger. No other load may write to the same partitions meanwhile. The fields
	// below but Size do not apply.
	Quick bool
	// MaxRows is the largest number of rows in a transaction; sizes below it are
	// drawn evenly. Size is the body bytes of each row.
	MaxRows int
	Size    int
	// The shares, in per cent, of transactions that are rolled back, that undo some
	// of their rows by a savepoint, that are compressed (MySQL only), that write
	// another table as well, and that delete their rows again.
	RolledBack, Savepoint, Compressed, Foreign, Tidy int
	// One transaction in Large has LargeRows rows, with rows of the table Side in
	// between; 0: none has.
	Large, LargeRows int
}

// kind is how one transaction goes about it.
type kind struct{ rollback, compressed, foreign, tidy, large bool }

// Write runs the load to its end and adds it to the journal. A connection or a
// server that goes away is waited for; a statement that the server refuses for
// another reason is an error. The context's end is the end of the load, not an
// error.
func (s *Shop) Write(ctx context.Context, load Load) (err error) {
	if load.Partitions == nil {
		load.Partitions = s.allPartitions()
	}
	writers := max(1, load.Writers)
	if load.Quick {
		writers = min(writers, len(load.Partitions))
		if err := s.readCounters(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.writeCounters(context.WithoutCancel(ctx), load.Partitions)) }()
	}
	var group errgroup.Group
	all := make([]*session, writers)
	for i := range all {
		share := 0
		if load.Transactions > 0 {
			share = load.Transactions / writers
			if i < load.Transactions%writers {
				share++
			}
			if share == 0 {
				continue
			}
		}
		mine := load
		if load.Quick {
			mine.Partitions = nil
			for j := i; j < len(load.Partitions); j += writers {
				mine.Partitions = append(mine.Partitions, load.Partitions[j])
			}
		}
		all[i] = s.session(mine)
		if load.Quick {
			s.quick = append(s.quick, fmt.Sprintf("%04x", all[i].number))
		}
		group.Go(func() error { return all[i].run(ctx, share, pause(load, writers)) })
	}
	err = group.Wait()
	for _, w := range all {
		if w != nil {
			s.journal = append(s.journal, w.journal...)
		}
	}
	return err
}

// pause is the time from one batch of a writer to its next.
func pause(load Load, writers int) time.Duration {
	if load.PerSecond == 0 {
		return 0
	}
	return time.Duration(max(1, load.Batch)*writers) * time.Second / time.Duration(load.PerSecond)
}

// WriteOne writes a single transaction of rows rows over the given number of
// keys, in as many statements as it takes.
func (s *Shop) WriteOne(ctx context.Context, rows, size, keys int) error {
	w := s.session(Load{Size: size, Partitions: s.allPartitions()})
	t := &history.Txn{ID: w.id(), Keys: w.keys(keys), Rows: uint32(rows), Size: int32(size)}
	s.journal = append(s.journal, t)
	if err := w.connect(ctx); err != nil {
		return err
	}
	defer w.disconnect()
	const packet = 4 << 20
	each := uint32(max(1, packet/(size+300)))
	w.sql.begin(t, s.options.partitions(t))
	for from := uint32(1); from <= t.Rows; from += each {
		w.sql.rows(t, from, min(t.Rows, from+each-1))
		if err := w.send(); err != nil {
			return fmt.Errorf("writing a transaction of %d rows: %w", rows, err)
		}
	}
	w.sql.add("COMMIT")
	if err := w.send(); err != nil {
		return fmt.Errorf("committing a transaction of %d rows: %w", rows, err)
	}
	t.Outcome = history.Committed
	return nil
}

// session is one writer with its connection. One goroutine owns it.
type session struct {
	shop    *Shop
	load    Load
	number  uint64
	random  *rand.Rand
	conn    *client.Conn
	sql     statement
	journal []*history.Txn
	count   uint64
	choice  []int32 // the keys of the load's partitions
}

func (s *Shop) session(load Load) *session {
	s.next++
	w := &session{
		shop: s, load: load, number: s.next, sql: statement{options: &s.options},
		random: rand.New(rand.NewPCG(s.options.Seed, s.next)),
	}
	for key := range s.options.Keys {
		if slices.Contains(load.Partitions, s.options.partition(key)) {
			w.choice = append(w.choice, key)
		}
	}
	return w
}

// id numbers the transactions: 16 bits of session, 32 bits of count.
func (w *session) id() uint64 {
	w.count++
	return w.number<<32 | w.count
}

// keys draws n different keys.
func (w *session) keys(n int) []int32 {
	first := w.random.IntN(len(w.choice))
	out := make([]int32, min(n, len(w.choice)))
	for i := range out {
		out[i] = w.choice[(first+i)%len(w.choice)]
	}
	return out
}

func (w *session) run(ctx context.Context, transactions int, every time.Duration) error {
	defer w.disconnect()
	next := time.Now()
	for done := 0; ctx.Err() == nil && (transactions == 0 || done < transactions); {
		if err := w.connect(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		n := max(1, w.load.Batch)
		if transactions > 0 {
			n = min(n, transactions-done)
		}
		if err := w.batch(n); err != nil {
			if !passes(err) {
				return err
			}
			w.disconnect()
			sleep(ctx, 20*time.Millisecond) // a server that refuses is not to be hammered
		}
		done += n
		if every > 0 {
			next = next.Add(every)
			if !sleep(ctx, time.Until(next)) {
				return nil
			}
		}
	}
	return nil
}

// batch sends n transactions in one packet. Without an answer to all of it, the
// outcome of each is open.
func (w *session) batch(n int) error {
	from := len(w.journal)
	outcomes := make([]history.Outcome, n)
	for i := range n {
		t, k := w.draw()
		w.journal = append(w.journal, t)
		outcomes[i] = history.Committed
		if w.load.Quick {
			w.sql.single(t, w.shop.count(w.shop.options.partition(t.Keys[0])))
			continue
		}
		w.sql.transaction(t, k)
		if k.rollback {
			outcomes[i] = history.RolledBack
		}
	}
	if err := w.send(); err != nil {
		return err
	}
	for i, o := range outcomes {
		w.journal[from+i].Outcome = o
	}
	return nil
}

// draw makes up the next transaction.
func (w *session) draw() (*history.Txn, kind) {
	rows := 1
	if w.load.MaxRows > 1 && !w.load.Quick {
		rows = 1 + w.random.IntN(w.load.MaxRows)
	}
	if w.load.Large > 0 && w.random.IntN(w.load.Large) == 0 {
		t := &history.Txn{ID: w.id(), Rows: uint32(w.load.LargeRows), Size: int32(w.load.Size), Keys: w.keys(20)}
		return t, kind{large: true}
	}
	t := &history.Txn{ID: w.id(), Rows: uint32(rows), Size: int32(w.load.Size),
		Keys: w.keys(1 + w.random.IntN(min(rows, 3)))}
	if rows > 1 && w.per(w.load.Savepoint) {
		t.UndoneFrom = 1 + w.random.Uint32N(t.Rows)
		t.UndoneTo = t.UndoneFrom + w.random.Uint32N(t.Rows-t.UndoneFrom+1)
	}
	return t, kind{
		rollback: w.per(w.load.RolledBack), compressed: w.per(w.load.Compressed),
		foreign: w.per(w.load.Foreign), tidy: w.per(w.load.Tidy),
	}
}

func (w *session) per(cent int) bool { return w.random.IntN(100) < cent }

// send sends the statements built so far and waits for all answers.
func (w *session) send() error {
	text := string(w.sql.text)
	w.sql.text = w.sql.text[:0]
	var first error
	_, err := w.conn.ExecuteMultiple(text, func(_ *mysql.Result, err error) {
		if first == nil {
			first = err
		}
	})
	return errors.Join(first, err)
}

// connect connects unless connected, and tries until the server is there.
func (w *session) connect(ctx context.Context) error {
	if w.conn != nil {
		return nil
	}
	for {
		conn, err := dial(ctx, w.shop.server, w.shop.options.Database)
		if err == nil {
			w.conn = conn
			w.shop.live.add(conn.GetConnectionID())
			return nil
		}
		if !passes(err) {
			return fmt.Errorf("connecting a writer: %w", err)
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("connecting a writer: %w", errors.Join(ctx.Err(), err))
		}
	}
}

func (w *session) disconnect() {
	if w.conn != nil {
		w.shop.live.remove(w.conn.GetConnectionID())
		w.conn.Close() // also ends a transaction that is open
		w.conn = nil
	}
}

// passes reports whether an error goes away by itself: the connection or the
// server is gone, or the transaction was the loser of a lock.
func passes(err error) bool {
	var refused *mysql.MyError
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.Code {
	case mysql.ER_LOCK_DEADLOCK, mysql.ER_LOCK_WAIT_TIMEOUT, mysql.ER_QUERY_INTERRUPTED, mysql.ER_SERVER_SHUTDOWN,
		mysql.ER_TABLE_DEF_CHANGED, mysql.ER_OPTION_PREVENTS_STATEMENT, erConnectionKilled, erSessionWasKilled:
		return true
	}
	return false
}

const (
	erConnectionKilled = 1927 // MariaDB
	erSessionWasKilled = 3169 // MySQL
)

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(d, 0)):
		return true
	}
}
