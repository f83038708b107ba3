package connector

import (
	"testing"
	"testing/synctest"
	"time"
)

// Heartbeats come at their interval, busy or idle, and count as no rows.
func TestHeartbeats(t *testing.T) {
	for _, exactlyOnce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(3, exactlyOnce)
			w.faults, w.beat, w.quick = 0, 10*time.Second, true
			c := w.start(t)
			time.Sleep(10*time.Minute + time.Second)
			synctest.Wait()
			w.check(t, 3)
			s := c.Status()
			if s.LastError != nil {
				t.Fatalf("%+v", s.LastError)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if n := len(w.heartbeats); n < 50 || n > 60 {
				t.Errorf("exactly once %v: %d heartbeats in ten minutes, want one in ten seconds", exactlyOnce, n)
			}
			for i := 1; i < len(w.heartbeats); i++ {
				if gap := w.heartbeats[i].Sub(w.heartbeats[i-1]); gap < 9*time.Second || gap > 21*time.Second {
					t.Errorf("exactly once %v: heartbeat %d came %v after the one before", exactlyOnce, i, gap)
				}
			}
			if p := s.Position; p.Seq != w.rows {
				t.Errorf("exactly once %v: %d rows are counted, want %d", exactlyOnce, p.Seq, w.rows)
			}
		})
	}
}

// A sink that has something to see to is asked while nothing comes.
func TestIdleSinkIsTended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3, true)
		w.faults, w.quick = 0, true
		w.start(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.mu.Lock()
		before := w.tended
		w.mu.Unlock()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := w.tended - before; n < 9 || n > 11 {
			t.Errorf("tended %d times in ten idle seconds, want once a second", n)
		}
	})
}
