package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// searches runs one search for an event at a time, while this node leads, and keeps
// the last one. Its methods may be called by any goroutine.
type searches struct {
	mu   sync.Mutex
	last *search
	next chan *search // room for the one that begins
}

func newSearches() *searches { return &searches{next: make(chan *search, 1)} }

// run carries out searches until ctx ends.
func (s *searches) run(ctx context.Context) {
	for {
		select {
		case one := <-s.next:
			one.run(ctx)
		case <-ctx.Done():
			select {
			case one := <-s.next: // nobody will begin it
				one.finish(nil, context.Cause(ctx))
			default:
			}
			return
		}
	}
}

// begin starts a search unless one is running.
func (s *searches) begin(one *search) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.shown().State == admin.SearchRunning {
		return &admin.Problem{Status: http.StatusConflict, Code: admin.CodeSearching,
			Detail: fmt.Sprintf("a search for event %s in the source of connector %s is running: wait, or end it", s.last.id,
				s.last.name)}
	}
	select {
	case s.next <- one:
		s.last = one
		return nil
	default:
		return &admin.Problem{Status: http.StatusServiceUnavailable, Code: admin.CodeBusy,
			Detail: "the last search is just ending", RetryAfter: time.Second}
	}
}

// of returns the last search if it is the one for an event of a connector.
func (s *searches) of(name, id string) *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && s.last.name == name && s.last.id == id {
		return s.last
	}
	return nil
}

// end ends the search for an event and returns the connector's name.
func (s *searches) end(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || s.last.id != id {
		return "", &admin.Problem{Status: http.StatusNotFound, Code: admin.CodeNoSearch,
			Detail: "there is no search for this event"}
	}
	s.last.cancel()
	return s.last.name, nil
}

// search reads the binlogs of a connector's source from their beginning to where they
// end when it begins, beside the connector, until the event comes.
type search struct {
	name, id string
	look     *observer
	now      func() time.Time
	spelled  [][]byte
	counts   connector.Counter
	ended    chan struct{}
	stop     sync.Once

	mu    sync.Mutex
	state admin.Search
	hit   *hit
}

// hit is an event in the binlog.
type hit struct {
	commit position.Commit
	row    uint64            // its number among the transaction's outbox rows, from 0
	nth    position.KindRows // its number among those of its kind, from 0
	before position.Position // of its transaction
}

func (a *api) newSearch(r *instance, id string) (*search, error) {
	look, err := a.observe(r, "search")
	if err != nil {
		return nil, unveiled(r.config, err)
	}
	look.canal.Needed, look.canal.Updates, look.canal.RefusePartialUpdates = look.route.IDColumns, false, false
	look.canal.Dialer = paced(int64(r.config.Events.ScanRate), look.canal.Dialer)
	return &search{
		name: r.name, id: id, look: look, now: a.now, spelled: connector.Spellings(id), ended: make(chan struct{}),
		state: admin.Search{State: admin.SearchRunning, Begun: a.now().UTC()},
	}, nil
}

func (s *search) cancel() { s.stop.Do(func() { close(s.ended) }) }

var errSearchEnded = errors.New("ended")

func (s *search) run(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end(nil)
	watching.Go(func() {
		select {
		case <-s.ended:
			end(errSearchEnded)
		case <-ctx.Done():
		}
	})
	found, err := s.walk(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.finish(found, err)
}

func (s *search) finish(found *hit, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Ended, s.hit = timeOf(s.now()), found
	switch {
	case errors.Is(err, errSearchEnded):
		s.state.State = admin.SearchCancelled
	case errors.Is(err, context.Canceled):
		s.state.State, s.state.Detail = admin.SearchCancelled, "this node no longer leads, or is stopping"
	case err != nil:
		s.state.State, s.state.Detail = admin.SearchFailed, s.look.cfg.Veil(err.Error())
	case found != nil:
		s.state.State = admin.SearchFound
	default:
		s.state.State, s.state.Detail = admin.SearchNotFound,
			"it is in none of the binlogs that the source had when the search began"
	}
}

func (s *search) shown() *admin.Search {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.state
	return &out
}

func (s *search) result() *hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hit
}

// walk returns where the event is, nil when it did not come.
func (s *search) walk(ctx context.Context) (*hit, error) {
	end, err := s.look.begin(ctx, config.StartCurrent)
	if err != nil {
		return nil, fmt.Errorf("asking the source: %w", err)
	}
	from, err := s.look.begin(ctx, config.StartEarliest)
	if err != nil {
		return nil, fmt.Errorf("asking the source: %w", err)
	}
	s.measure(ctx)
	if from.Covers(end) {
		return nil, nil
	}
	var found *hit
	before, err := s.look.scan(ctx, from, end, func(tx *txn.Transaction, read canal.Status) (more bool, _ error) {
		found = s.among(tx)
		s.progress(read, tx.Commit)
		return found == nil, nil
	})
	if found != nil {
		found.before = before
	}
	return found, err
}

// among returns where the event's row is in a transaction, or nil.
func (s *search) among(tx *txn.Transaction) *hit {
	if tx.FirstRow == 0 {
		s.counts.Reset()
	}
	var text []byte
	for i := range tx.Rows {
		kind, n := s.counts.Next(&tx.Rows[i])
		text = s.look.route.AppendID(text[:0], &tx.Rows[i])
		for _, want := range s.spelled {
			if len(text) > 0 && bytes.Equal(text, want) {
				return &hit{commit: tx.Commit, row: tx.FirstRow + uint64(i), nth: position.KindRows{Kind: kind, N: n}}
			}
		}
	}
	return nil
}

// measure asks how much there is to read; without an answer the progress has no end.
func (s *search) measure(ctx context.Context) {
	c, err := s.look.connect()
	if err != nil {
		return
	}
	logs, err := canal.Binlogs(ctx, c)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range logs {
		s.state.OfBytes += l.Size
	}
}

func (s *search) progress(at canal.Status, last position.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Bytes, s.state.Transactions = at.ReceivedBytes, at.Transactions
	if !last.Committed.IsZero() {
		s.state.At = timeOf(last.Committed)
	}
}
