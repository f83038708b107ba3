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
