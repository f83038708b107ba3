package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
)

// The largest transactions pass through little memory: one that is far larger
// than the memory the connector may use, and one that is just small enough to be
// held in it (limits.transaction_bytes is 64 MiB).

func TestOneGigabyteTransaction(t *testing.T) { largeTransaction(t, scaled(t, 1_000_000)) }

func TestTransactionHeldInMemory(t *testing.T) { largeTransaction(t, 55_000) }

func largeTransaction(t *testing.T, rows int) {
	t.Helper()
	const limit = 256 << 20
	s := newStage(t, play{server: mysqlGTID(t)})
	s.start()
	from := time.Now()
	if err := s.shop.WriteOne(t.Context(), rows, 1000, 500); err != nil {
		t.Fatal(err)
	}
	t.Logf("written in %v", time.Since(from).Round(time.Millisecond))
	if err := s.shop.Write(t.Context(), workload.Load{Transactions: 100, Writers: 2, Batch: 5, MaxRows: 3,
		Size: 100}); err != nil {
		t.Fatal(err)
	}
	s.finish(history.ExactlyOnce)
	if s.peak == 0 || s.peak > limit {
		t.Errorf("%d MB were resident, want more than 0 and less than %d", s.peak>>20, limit>>20)
	}
}

// TestRowOf40MBPasses where producer and topic take it.
func TestRowOf40MBPasses(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), maxMessage: 64 << 20})
	s.start()
	s.around(40_000_000)
	s.finish(history.ExactlyOnce)
}

// TestRowOf40MBStops where the topic has Kafka's default limit: the connector says
// which row, and stays until somebody decides.
func TestRowOf40MBStops(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t)})
	s.start()
	s.around(40_000_000)
	status := s.await("the connector has failed", time.Minute,
		func(c harness.ConnectorStatus) bool { return c.State == "failed" })
	if status.LastError == nil {
		t.Fatal("a failed connector without a last error")
	}
	t.Logf("%s: %s", status.LastError.Code, status.LastError.Message)
	for _, word := range []string{"max.message.bytes", s.topic} {
		if !strings.Contains(status.LastError.Message, word) {
			t.Errorf("the reason does not name %s", word)
		}
	}
	if !strings.Contains(status.LastError.GTID+status.LastError.Message, ":") || status.LastError.GTID == "" {
		t.Errorf("the reason does not name the GTID")
	}
	if status.LastError.RetryAt != nil {
		t.Error("the connector tries again what can't succeed")
	}
	// What committed before the row is there.
	if err := s.tail.Wait(t.Context(), 10, silence); err != nil {
		t.Error(err)
	}
	s.terminate()
}

// around writes small transactions, one row of that size, and small ones again.
func (s *stage) around(size int) {
	s.t.Helper()
	small := workload.Load{Transactions: 10, Writers: 1, Size: 100}
	for _, write := range []func() error{
		func() error { return s.shop.Write(s.t.Context(), small) },
		func() error { return s.shop.WriteOne(s.t.Context(), 1, size, 1) },
		func() error { return s.shop.Write(s.t.Context(), small) },
	} {
		if err := write(); err != nil {
			s.t.Fatal(err)
		}
	}
}
