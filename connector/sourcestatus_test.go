package connector

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func mustSet(t *testing.T, text string) *position.Set {
	t.Helper()
	s, err := position.ParseSet(position.MySQL, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What follows from an answer, or several, of the source.
func TestBacklog(t *testing.T) {
	const a = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(set, file string, pos uint64, committed time.Duration) reach {
		r := reach{file: file, pos: pos, committed: noon.Add(committed)}
		if set != "" {
			r.set = mustSet(t, a+":"+set)
		}
		return r
	}
	answer := func(executed string, when time.Duration) *canal.SourceStatus {
		v := &canal.SourceStatus{At: noon.Add(when), Server: a, Retention: 24 * time.Hour,
			Binlogs: []canal.Binlog{{Name: "b.000007", Size: 1000}, {Name: "b.000008", Size: 500}}}
		if executed != "" {
			v.Executed, v.Purged = mustSet(t, a+":"+executed), mustSet(t, a+":1-3")
		}
		return v
	}
	type step struct {
		v             *canal.SourceStatus
		read, durable reach
		closed        bool // no stream is open
		waiting       time.Duration
		arrival       time.Duration
		heard         time.Duration // 0 means never
		silent        time.Duration
		lag           time.Duration
		want          string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"nothing is known yet", []step{{arrival: time.Second, waiting: 2 * time.Second, lag: 2 * time.Second,
			want: "none"}}},
		{"idle since an hour, after a late last transaction", []step{
			{v: answer("1-9", 0), read: at("1-9", "b.000008", 500, -time.Hour), arrival: time.Hour,
				want: "0 transactions, 0 bytes, 24h0m0s, 1500 bytes"},
		}},
		{"one that came after an idle hour is not an hour late", []step{
			{v: answer("1-9", -10*time.Second), read: at("1-9", "b.000008", 400, -time.Hour),
				want: "0 transactions, 100 bytes, 23h59m50s, 1400 bytes"},
			{v: answer("1-10", 0), read: at("1-9", "b.000008", 400, -time.Hour), lag: 10 * time.Second,
				want: "1 transactions, 100 bytes, 24h0m0s, 1400 bytes"},
		}},
		{"catching up: as old as where it is", []step{
			{v: answer("1-9", 0), read: at("1-5", "b.000007", 300, -3*time.Hour), lag: 3 * time.Hour,
				want: "4 transactions, 1200 bytes, 21h0m0s, 300 bytes"},
		}},
		{"all is read and Kafka is away", []step{
			{v: answer("1-9", 0), read: at("1-9", "b.000008", 500, -time.Minute),
				durable: at("1-4", "b.000007", 100, -2*time.Hour), waiting: 90 * time.Minute,
				lag: 90 * time.Minute, want: "0 transactions, 0 bytes, 22h0m0s, 100 bytes"},
		}},
		{"what was read does not count when it was not published", []step{
			{v: answer("1-9", -time.Minute), read: at("1-9", "b.000008", 500, -time.Hour),
				durable: at("1-4", "b.000007", 100, -2*time.Hour), want: "0 transactions, 0 bytes, 22h0m0s, 100 bytes"},
			{durable: at("1-4", "b.000007", 100, -2*time.Hour), closed: true, lag: 2 * time.Hour,
				want: "5 transactions, 1400 bytes, 22h0m0s, 100 bytes"},
		}},
		{"unknown is not zero: the source has not answered for 40 s", []step{
			{v: answer("1-9", -40*time.Second), read: at("1-9", "b.000008", 500, -time.Hour), heard: -50 * time.Second,
				silent: 15 * time.Second,
				lag:    40 * time.Second, want: "uncounted, unplaced, 23h59m20s"},
			{read: at("1-9", "b.000008", 500, -time.Hour), heard: -30 * time.Second, silent: 15 * time.Second,
				lag: 30 * time.Second, want: "uncounted, unplaced, 23h59m20s"},
			{read: at("1-9", "b.000008", 500, -time.Hour), heard: -10 * time.Second, silent: 15 * time.Second,
				want: "0 transactions, 0 bytes, 23h59m20s, 1500 bytes"},
			{durable: at("1-9", "b.000008", 500, -time.Hour), closed: true, silent: 15 * time.Second, lag: 40 * time.Second,
				want: "uncounted, unplaced, 23h59m20s"},
		}},
		{"by file", []step{
			{v: answer("", 0), read: at("", "b.000008", 500, -time.Hour), want: "uncounted, 0 bytes, 24h0m0s, 1500 bytes"},
			{v: answer("", 0), read: at("", "b.000008", 450, -time.Hour), lag: 0,
				want: "uncounted, 50 bytes, 24h0m0s, 1450 bytes"},
		}},
		{"by file, far behind", []step{
			{v: answer("", 0), read: at("", "b.000007", 900, -20*time.Hour), lag: 20 * time.Hour,
				want: "uncounted, 600 bytes, 4h0m0s, 900 bytes"},
		}},
		{"by file, purged", []step{
			{v: answer("", 0), read: at("", "b.000006", 900, -20*time.Hour), closed: true, want: "uncounted, unplaced, 0s"},
		}},
		{"purged", []step{
			{v: answer("1-9", 0), read: at("1-2", "b.000006", 900, -30*time.Hour), lag: 30 * time.Hour,
				want: "7 transactions, unplaced, 0s"},
		}},
		{"it will be purged any moment", []step{
			{v: answer("1-9", 0), read: at("1-5", "b.000007", 900, -30*time.Hour), lag: 30 * time.Hour,
				want: "4 transactions, 600 bytes, 0s, 900 bytes"},
		}},
	} {
		var s polls
		for i, st := range c.steps {
			if st.v != nil {
				s.took(st.v)
			}
			it := comparison{durable: st.durable, read: &st.read, server: a, waiting: st.waiting, arrival: st.arrival, now: noon,
				silent: st.silent}
			if st.heard != 0 {
				it.heard = noon.Add(st.heard)
			}
			if st.durable.committed.IsZero() {
				it.durable = st.read
			}
			if st.closed {
				it.read = nil
			}
			b, lag := s.backlog(it)
			if got := describe(b); got != st.want || lag != st.lag {
				t.Errorf("%s, step %d: %s, lag %v; want %s, lag %v", c.name, i+1, got, lag, st.want, st.lag)
			}
		}
	}
}

func describe(b *Backlog) string {
	if b == nil {
		return "none"
	}
	parts := []string{"uncounted", "unplaced", "kept"}
	if b.Transactions != nil {
		parts[0] = strconv.FormatUint(*b.Transactions, 10) + " transactions"
	}
	if b.HeadroomSeconds != nil {
		parts[2] = time.Duration(*b.HeadroomSeconds * float64(time.Second)).String()
	}
	if b.Bytes != nil {
		parts[1] = strconv.FormatUint(*b.Bytes, 10) + " bytes"
		parts = append(parts, strconv.FormatUint(*b.HeadroomBytes, 10)+" bytes")
	}
	return strings.Join(parts, ", ")
}

// polled is a world whose source says how far it is.
type polled struct {
	*world
	retention time.Duration
}

func (w *polled) PollStatus(context.Context, string) (*canal.SourceStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := position.NewSet(position.MySQL)
	all.AddRange(position.GTID{SID: simServer, Seq: 60}, 1)
	return &canal.SourceStatus{At: time.Now(), Executed: all, Purged: position.NewSet(position.MySQL),
		Retention: w.retention,
		Binlogs:   []canal.Binlog{{Name: "b.000001", Size: 6000}}}, nil
}

// A paused connector says how much it is behind, and one that has caught up and
// idles is not behind at all, however long.
func TestBacklogOfPausedAndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorld()
		w.want = StatePaused
		reg := prometheus.NewRegistry()
		cfg := DefaultConfig()
		cfg.Name = "sim"
		cfg.SequenceHeaders = true
		s := &polled{w, time.Hour}
		c := New(cfg, s, w, w, w, reg, w.connector().log)
		drain, end := context.WithCancel(context.Background())
		done := make(chan struct{})
		w.mu.Lock()
		w.stored, w.found = position.Position{Flavor: position.MySQL, Set: position.NewSet(position.MySQL)}, true
		w.stored.Advance(position.Commit{GTID: position.GTID{SID: simServer, Seq: 1}, First: 1, File: "b.000001", Pos: 100,
			Committed: time.Now()})
		w.mu.Unlock()
		go func() { defer close(done); c.Run(drain, context.Background(), 1) }()
		settle()
		st := c.Status()
		if b := st.Backlog; b == nil || *b.Transactions != 59 || *b.Bytes != 5900 || st.Lag < time.Minute ||
			*b.HeadroomSeconds < 59*60 {
			t.Errorf("paused: %+v, lag %v", b, st.Lag)
		}
		w.set(StateRunning)
		time.Sleep(5 * time.Hour)
		st = c.Status()
		if b := st.Backlog; b == nil || *b.Transactions != 0 || st.Lag != 0 || *b.HeadroomSeconds < 59*60 {
			t.Errorf("idle: %+v, lag %v", b, st.Lag)
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP binlog_outbox_source_backlog_transactions Transactions that the source has committed and the connector has not read. Absent without GTIDs, and while the source does not answer.
# TYPE binlog_outbox_source_backlog_transactions gauge
binlog_outbox_source_backlog_transactions 0
# HELP binlog_outbox_source_lag_seconds Age of the oldest transaction that the source has committed and that is not published; 0 when there is none, and the time since the last sign of life of a source that does not answer.
# TYPE binlog_outbox_source_lag_seconds gauge
binlog_outbox_source_lag_seconds 0
`), "binlog_outbox_source_backlog_transactions", "binlog_outbox_source_lag_seconds"); err != nil {
			t.Error(err)
		}
		end()
		<-done
		if n, err := testutil.GatherAndCount(reg, "binlog_outbox_source_backlog_transactions",
			"binlog_outbox_source_lag_seconds", "binlog_outbox_connector_streaming"); n != 0 || err != nil {
			t.Errorf("a node that does not run it gives %d series, %v", n, err)
		}
	})
}
