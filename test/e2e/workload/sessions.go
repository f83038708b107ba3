package workload

import "sync"

// sessions are the connections that write now, for KillWriter.
type sessions struct {
	mu  sync.Mutex
	ids map[uint32]bool
}

func newSessions() *sessions { return &sessions{ids: make(map[uint32]bool)} }

func (s *sessions) add(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = true
}

func (s *sessions) remove(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

func (s *sessions) any() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.ids {
		return id
	}
	return 0
}
