package kafka

import (
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// LeaveTransactionOpen sends a batch and its position, and commits neither: what a
// leader leaves behind that dies or stands still at that place.
func LeaveTransactionOpen(t *testing.T, s *ExactlyOnce, b *txn.Batch) {
	t.Helper()
	to, err := s.aim(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	if err := s.send(t.Context(), b, to); err != nil {
		t.Fatal(err)
	}
}

// CommitOpenTransaction commits what LeaveTransactionOpen has left.
func CommitOpenTransaction(t *testing.T, s *ExactlyOnce) error {
	t.Helper()
	return s.commitTxn(t.Context())
}

// LeaveRecordsOpen sends a batch without its position, and commits nothing.
func LeaveRecordsOpen(t *testing.T, s *ExactlyOnce, b *txn.Batch) {
	t.Helper()
	to, err := s.aim(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	if err := s.sendAll(t.Context(), b.Groups, to); err != nil {
		t.Fatal(err)
	}
}

// CommitOpenRecords sends the position of what LeaveRecordsOpen has left and commits it.
func CommitOpenRecords(t *testing.T, s *ExactlyOnce, b *txn.Batch) error {
	t.Helper()
	if err := s.send(t.Context(), &txn.Batch{Position: b.Position}, targets{}); err != nil {
		return err
	}
	return s.commitTxn(t.Context())
}

// Identity returns the producer id and epoch of an open sink.
func Identity(s *ExactlyOnce) (producer int64, epoch int16) {
	return s.parts.id.producer, s.parts.id.epoch
}

// Pend has an open sink take records of its own that are committed up to an offset for
// ones whose marker is not known to be there.
func Pend(s *ExactlyOnce, topic string, partition int32, offset int64) {
	s.parts.pending[topicPartition{topic, partition}] = ending{producer: s.parts.id.producer, epoch: s.parts.id.epoch,
		offset: offset}
}

// WouldCommit reports what an open sink makes of a transaction that is open in the
// position topic, when the coordinator remembers nothing of it.
func WouldCommit(t *testing.T, s *ExactlyOnce, producer int64, epoch int16, start int64) (commit, decided bool) {
	t.Helper()
	s.parts.before.TransactionState = "Empty"
	v, err := s.judgePosition(t.Context(), hanging{producer: producer, epoch: int32(epoch), start: start})
	if err != nil {
		t.Fatal(err)
	}
	return v == toCommit, v != undecided
}

// WaitForMarkers sets how long the sinks of p wait for the ends of transactions.
func WaitForMarkers(p *Publisher, d time.Duration) { p.markers = d }
