package kafka

import "testing"

// LeaveTransactionOpen sends a batch and its position, and commits neither: what a
// leader leaves behind that dies or stands still at that place.
func LeaveTransactionOpen(t *testing.T, s *ExactlyOnce, b *Batch) {
	t.Helper()
	to, err := s.aim(b.Records)
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
func LeaveRecordsOpen(t *testing.T, s *ExactlyOnce, b *Batch) {
	t.Helper()
	to, err := s.aim(b.Records)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	if err := s.sendAll(t.Context(), b.Records, nil, to); err != nil {
		t.Fatal(err)
	}
}

// CommitOpenRecords sends the position of what LeaveRecordsOpen has left and commits it.
func CommitOpenRecords(t *testing.T, s *ExactlyOnce, b *Batch) error {
	t.Helper()
	if err := s.send(t.Context(), &Batch{Marks: b.Marks, Position: b.Position}, targets{}); err != nil {
		return err
	}
	return s.commitTxn(t.Context())
}
