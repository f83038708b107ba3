package kafkatest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func batch(values ...string) *kafka.Batch {
	b := &kafka.Batch{Position: position.Position{File: "b.1", Pos: uint64(len(values)), Last: position.GTID{}}}
	for i, v := range values {
		b.Marks = append(b.Marks, position.Mark{})
		b.Records = append(b.Records, kafka.Record{Topic: "t", Value: []byte(v), Mark: i})
	}
	return b
}

func open(t *testing.T, m *kafkatest.Memory) *kafkatest.Sink {
	t.Helper()
	s := m.NewSink()
	if _, _, err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSinkDouble(t *testing.T) {
	boom := errors.New("boom")
	for _, exactlyOnce := range []bool{false, true} {
		m := kafkatest.NewMemory(exactlyOnce)
		s := open(t, m)
		if done, err := s.Commit(t.Context(), batch("a", "b")); done != 2 || err != nil {
			t.Fatalf("Commit = %d, %v", done, err)
		}
		m.FailCommit(1, 1, boom)
		if _, err := s.Commit(t.Context(), batch("c")); err != nil {
			t.Fatal(err)
		}
		done, err := s.Commit(t.Context(), batch("d", "e"))
		wantDone, wantRecords := 1, 4
		if exactlyOnce {
			wantDone, wantRecords = 0, 3
		}
		if !errors.Is(err, boom) || done != wantDone || len(m.Records()) != wantRecords {
			t.Errorf("exactly once %v: Commit = %d, %v with %d records", exactlyOnce, done, err, len(m.Records()))
		}
		if _, err := s.Commit(t.Context(), batch("d")); !errors.Is(err, kafkatest.ErrDead) {
			t.Errorf("Commit after an error = %v", err)
		}
		pos, found, _ := m.NewSink().Open(t.Context())
		if found != exactlyOnce || exactlyOnce && pos.Pos != 1 {
			t.Errorf("exactly once %v: position %v, %v", exactlyOnce, pos, found)
		}
	}
}

func TestSinkDoubleFences(t *testing.T) {
	m := kafkatest.NewMemory(true)
	old := open(t, m)
	open(t, m)
	if _, err := old.Commit(t.Context(), batch("a")); !errors.Is(err, kafkatest.ErrFenced) {
		t.Errorf("Commit of the old sink = %v", err)
	}
}

func TestSinkDoubleHolds(t *testing.T) {
	m := kafkatest.NewMemory(false)
	s := open(t, m)
	held, release := m.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, batch("a"))
		result <- err
	}()
	<-held
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("Commit = %v", err)
	}
	release()
}
