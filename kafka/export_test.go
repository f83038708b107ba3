package kafka

import (
	"testing"

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
	marks := &txn.Batch{Position: b.Position}
	for i := range b.Groups {
		marks.Groups = append(marks.Groups, txn.Group{Mark: b.Groups[i].Mark})
	}
	if err := s.send(t.Context(), marks, targets{}); err != nil {
		return err
	}
	return s.commitTxn(t.Context())
}
