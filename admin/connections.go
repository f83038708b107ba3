package admin

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// maxConns bounds the connections of the server: each is a file of the process, which
// needs some for MySQL and Kafka.
const maxConns = 512

// connections keeps the connections of a server to a number. Where one more comes, the
// address that has most of them gives one up, so that somebody who opens many is the
// only one who loses by it.
type connections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*connection
}

type connection struct {
	address string
	since   time.Time
	active  bool
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*connection{}}
}

// follow is for http.Server.ConnState.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	if victim := c.note(conn, state); victim != nil {
		_ = victim.Close() // its request, if any, sees it
	}
}

// note keeps the books and returns the connection that has to go, if any.
func (c *connections) note(conn net.Conn, state http.ConnState) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
		if err != nil {
			host = conn.RemoteAddr().String()
		}
		c.open[conn] = &connection{address: host, since: time.Now()}
		if len(c.open) > c.most {
			victim = c.victim(conn)
			delete(c.open, victim)
		}
	case http.StateActive, http.StateIdle:
		if known := c.open[conn]; known != nil {
			known.active, known.since = state == http.StateActive, time.Now()
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	return victim
}

// victim is a connection of the address with most of them: the one that has been idle
// for longest, else the last one that came, which newest is if it is from there.
func (c *connections) victim(newest net.Conn) net.Conn {
	count := map[string]int{}
	for _, o := range c.open {
		count[o.address]++
	}
	greedy := c.open[newest].address
	for address, n := range count {
		if n > count[greedy] {
			greedy = address
		}
	}
	var idle, last net.Conn
	for conn, o := range c.open {
		switch {
		case o.address != greedy:
		case !o.active && conn != newest && (idle == nil || o.since.Before(c.open[idle].since)):
			idle = conn
		case last == nil || o.since.After(c.open[last].since):
			last = conn
		}
	}
	if idle != nil {
		return idle
	}
	return last
}
