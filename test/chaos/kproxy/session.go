package kproxy

import (
	"net"
	"sync"
)

// session is one connection of a client with the one to the broker behind it.
type session struct {
	proxy           *Proxy
	client, backend net.Conn
	dial            dialFunc

	mu    sync.Mutex
	fates map[uint32]sent // by correlation id: requests whose answer is not passed on
}

type sent struct {
	request Request
	fate    Fate
}

func (s *session) run() {
	var answers sync.WaitGroup
	answers.Go(func() {
		defer s.client.Close()
		s.answers()
	})
	s.requests()
	// Neither side is told more: a client that was cut must not get the answer, and
	// what was handed on is with the broker already.
	_ = s.client.Close()
	_ = s.backend.Close()
	answers.Wait()
}

// requests hands requests on until the client or one of them ends the session.
func (s *session) requests() {
	for {
		frame, err := readFrame(s.client)
		if err != nil || len(frame) < headerLen {
			return
		}
		r := Request{Frame: frame}
		switch f := s.proxy.fate(r); f.Action {
		case Drop:
			return
		case Late:
			s.proxy.later(r, f, s.dial)
			return
		case Stall:
			s.proxy.later(r, f, s.dial)
			continue
		case Lose, Copy:
			s.mu.Lock()
			s.fates[r.correlation()] = sent{r, f}
			s.mu.Unlock()
			if _, err := s.backend.Write(frame); err != nil {
				return
			}
			continue
		case Slow:
			if !s.proxy.wait(f) {
				return
			}
		}
		if _, err := s.backend.Write(frame); err != nil {
			return
		}
	}
}

// answers hands answers back until the broker or a lost one ends the session.
func (s *session) answers() {
	for {
		frame, err := readFrame(s.backend)
		if err != nil {
			return
		}
		s.mu.Lock()
		lost, ok := s.fates[correlationOf(frame)]
		s.mu.Unlock()
		if ok {
			s.proxy.count("%s %s answered %s", lost.request.Name(), lost.fate.Action, lost.request.answerCode(frame))
			if lost.fate.Action == Copy {
				s.proxy.later(lost.request, lost.fate, s.dial)
			}
			return
		}
		if _, err := s.client.Write(frame); err != nil {
			return
		}
	}
}
