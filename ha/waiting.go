package ha

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// waitingRoom bounds the connections that have not said yet who they are: all of
// them, and those from one address, so that one stranger does not take all places.
// Its methods are safe for concurrent use.
type waitingRoom struct {
	mu    sync.Mutex
	total int
	of    map[netip.Addr]int
	// Of refusals one is told in refusalEvery, with how many were not.
	said time.Time
	held int
}

const refusalEvery = time.Second

func newWaitingRoom() *waitingRoom { return &waitingRoom{of: map[netip.Addr]int{}} }

// enter takes a place, which leave, to be called once, gives up. It returns an error
// when there is none.
func (w *waitingRoom) enter(remote net.Addr) (leave func(), err error) {
	addr := network(remote)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.of[addr] >= maxWaitingOf:
		return nil, fmt.Errorf("%d connections from this address have not said yet who they are", maxWaitingOf)
	case w.total >= maxWaiting:
		return nil, fmt.Errorf("%d connections have not said yet who they are", maxWaiting)
	}
	w.total++
	w.of[addr]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.total--
		if w.of[addr]--; w.of[addr] == 0 {
			delete(w.of, addr)
		}
	}, nil
}

// say reports whether a refusal is to be told, and how many were not since the last.
func (w *waitingRoom) say(now time.Time) (more int, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.said) < refusalEvery {
		w.held++
		return 0, false
	}
	more, w.held, w.said = w.held, 0, now
	return more, true
}

// network is what connections are counted by: an IPv4 address, or of an IPv6 address
// the network, in which one host has as many as it likes.
func network(remote net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr().Unmap()
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}
