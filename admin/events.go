package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/binlog-outbox/binlog-outbox/connector"
)

const (
	// maxStreams bounds the clients that follow events at the same time.
	maxStreams = 32
	// eventPace is how often the status is sent, eventPatience how long a client may
	// take to read an event before it is cut off.
	eventPace     = time.Second
	eventPatience = 5 * time.Second
)

// stateChange is the data of a state event.
type stateChange struct {
	Connector string `json:"connector"`
	From      string `json:"from"`
	To        string `json:"to"`
	Phase     string `json:"phase,omitempty"`
}

// events sends server-sent events: status at once and then once a second, and before
// it leader, state and error when one of them has changed. Each is whole, so that
// who comes back needs nothing of what was missed.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		writeProblem(w, &Problem{Status: http.StatusServiceUnavailable, Code: CodeBusy,
			Detail: fmt.Sprintf("%d clients follow events already", maxStreams), RetryAfter: 5 * time.Second})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := &eventWriter{w: w, control: http.NewResponseController(w), patience: cmp.Or(s.cfg.patience, eventPatience)}
	tick := time.NewTicker(cmp.Or(s.cfg.pace, eventPace))
	defer tick.Stop()
	var last *Status
	for {
		now := s.node.Status()
		if last != nil {
			out.changes(last, &now)
		}
		out.send("status", now)
		if out.err != nil {
			return // gone, or too slow
		}
		last = &now
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			return
		}
	}
}

// eventWriter sends events until one can't be sent.
type eventWriter struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	err      error
}

func (e *eventWriter) send(event string, data any) {
	if e.err != nil {
		return
	}
	text, err := json.Marshal(data)
	if err == nil {
		err = e.control.SetWriteDeadline(time.Now().Add(e.patience))
	}
	if err == nil {
		_, err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", event, text)
	}
	if err == nil {
		err = e.control.Flush()
	}
	e.err = err
}

// changes sends what is different between two states.
func (e *eventWriter) changes(before, after *Status) {
	if before.Leader != after.Leader || before.Term != after.Term {
		e.send("leader", struct {
			Leader string `json:"leader"`
			Term   uint64 `json:"term"`
		}{after.Leader, after.Term})
	}
	was := map[string]Connector{}
	for _, c := range before.Connectors {
		was[c.Name] = c
	}
	for _, c := range after.Connectors {
		old := was[c.Name]
		if old.State != c.State || old.Phase != c.Phase {
			e.send("state", stateChange{c.Name, old.State, c.State, c.Phase})
		}
		if c.LastError != nil && (old.LastError == nil || !old.LastError.At.Equal(c.LastError.At)) {
			e.send("error", struct {
				Connector string `json:"connector"`
				*connector.LastError
			}{c.Name, c.LastError})
		}
	}
}
