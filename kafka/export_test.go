package kafka

import "testing"

// LeaveTransactionOpen sends a batch and its position, and commits neither: what a
// leader leaves behind that dies or stands still at that place.
func LeaveTransactionOpen(t *testing.T, s *ExactlyOnce, b *Batch) {
	t.Helper()
	key, value, err := s.positions.next(s.positions.at, b.Marks, b.Position)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.p.async.BeginTxn(); err != nil {
		t.Fatal(err)
	}
	if err := s.send(t.Context(), b, key, value); err != nil {
		t.Fatal(err)
	}
}
