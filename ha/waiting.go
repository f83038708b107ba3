package ha

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// waitingRoom bounds the connections that have not said yet who they are: all of
// them, and those from one address. When all places are taken, the oldest of the
// address that has the most makes room for one that has fewer, so that strangers do not
// keep peers out, from however many addresses they come. Its methods are safe for
// concurrent use.
type waitingRoom struct {
	mu    sync.Mutex
	total int
	of    map[netip.Addr][]net.Conn // in the order in which they came
	// Of refusals one is told in refusalEvery, with how many were not.
	said time.Time
	held int
}

const refusalEvery = time.Second

func newWaitingRoom() *waitingRoom { return &waitingRoom{of: map[netip.Addr][]net.Conn{}} }

// enter takes a place for conn, which leave gives up. It returns an error when there is
// none. A connection that has to make room is closed.
func (w *waitingRoom) enter(conn net.Conn) (leave func(), err error) {
	addr := network(conn.RemoteAddr())
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.of[addr]) >= maxWaitingOf {
		return nil, fmt.Errorf("%d connections from this address have not said yet who they are", maxWaitingOf)
	}
	if w.total >= maxWaiting {
		most := addr
		for other, list := range w.of {
			if len(list) > len(w.of[most]) {
				most = other
			}
		}
		if most == addr {
			return nil, fmt.Errorf("%d connections have not said yet who they are", maxWaiting)
		}
		oldest := w.of[most][0]
		w.remove(most, oldest)
		_ = oldest.Close() // its handshake fails with this
	}
	w.total++
	w.of[addr] = append(w.of[addr], conn)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remove(addr, conn)
	}, nil
}

// remove does nothing for a connection that has made room already.
func (w *waitingRoom) remove(addr netip.Addr, conn net.Conn) {
	i := slices.Index(w.of[addr], conn)
	if i < 0 {
		return
	}
	w.total--
	if w.of[addr] = slices.Delete(w.of[addr], i, i+1); len(w.of[addr]) == 0 {
		delete(w.of, addr)
	}
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
