package ha

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/hashicorp/raft"
)

// Nodes ask each other over HTTP: who are you, please write this or change the members
// (anyone to the leader), let me in, do you miss the leader too. All other paths are of the
// program around the node. One request per connection: all are rare. Fields that the
// other side does not know are passed over.
const (
	pathHello   = "/ha/hello"
	pathApply   = "/ha/apply"
	pathMembers = "/ha/members"
	pathJoin    = "/ha/join"
	pathGone    = "/ha/gone"

	// toLeaderHeader is in requests that only a leader may answer, refusedHeader in answers
	// of this package whose body is a wireError.
	toLeaderHeader = "Ha-To-Leader"
	refusedHeader  = "Ha-Refused"
)

// hello is what a node tells of itself.
type hello struct {
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	Cluster  string `json:"cluster,omitempty"`
	HasState bool   `json:"has_state"`
	// Peers are the node's configured peers as "id=address", sorted.
	Peers []string `json:"peers"`
	// Commands is the newest version of commands that the node understands.
	Commands  int    `json:"commands,omitempty"`
	LastIndex uint64 `json:"last_index,omitempty"`
	// Witness, Cooling and Failed say why the node does not want to lead.
	Witness bool `json:"witness,omitempty"`
	Cooling bool `json:"cooling,omitempty"`
	Failed  bool `json:"failed,omitempty"`
	// Member says in an answer whether the asker is a member; nil when the answering node
	// does not know, having no leader.
	Member *bool `json:"member,omitempty"`
}

func (h *hello) raftID() raft.ServerID { return identity{Name: h.Name, UUID: h.UUID}.raftID() }

// memberRequest asks the leader for a change of members.
type memberRequest struct {
	Op     op     `json:"op"`
	ID     string `json:"id,omitempty"`
	Addr   string `json:"addr,omitempty"`
	Force  bool   `json:"force,omitempty"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// wireError carries an error over the connection so that errors.Is and errors.As
// find the same on the other side.
type wireError struct {
	Code     string         `json:"code,omitempty"`
	Text     string         `json:"text"`
	Rejected *RejectedError `json:"rejected,omitempty"`
}

// wireCodes are those of errors after which nothing was changed. A node that shuts down
// goes away, and another will lead.
var wireCodes = []struct {
	code     string
	is, then error
}{
	{"not_leader", ErrNotLeader, ErrNotLeader},
	{"no_leader", ErrNoLeader, ErrNoLeader},
	{"busy", ErrBusy, ErrBusy},
	{"shutting_down", ErrShuttingDown, ErrNoLeader},
	{"invalid", ErrInvalid, ErrInvalid},
	{"not_member", ErrNotMember, ErrNotMember},
	{"quorum", ErrQuorum, ErrQuorum},
	{"no_other_voter", ErrNoOtherVoter, ErrNoOtherVoter},
}

func toWire(err error) *wireError {
	w := &wireError{Text: err.Error()}
	if _, unknown := errors.AsType[*UnknownOutcomeError](err); unknown || errors.As(err, &w.Rejected) {
		return w
	}
	for _, c := range wireCodes {
		if errors.Is(err, c.is) {
			w.Code = c.code
			break
		}
	}
	return w
}

// Error implements error.
func (w *wireError) Error() string { return w.Text }

// Unwrap returns what the other node's error was. The outcome of one without a code is
// unknown.
func (w *wireError) Unwrap() error {
	if w.Rejected != nil {
		return w.Rejected
	}
	for _, c := range wireCodes {
		if c.code == w.Code {
			return c.then
		}
	}
	return &UnknownOutcomeError{"asking another node", errors.New(w.Text)}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set(refusedHeader, "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(toWire(err)) // the asker may be gone
}

// answering serves a path with JSON for JSON.
func answering[In, Out any](answer func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			refuse(w, fmt.Errorf("%w: %w", ErrInvalid, err))
			return
		}
		out, err := answer(r.Context(), in)
		if err != nil {
			refuse(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(out) // the asker may be gone
	}
}

// changing is for what has no answer but an error.
func changing[In any](change func(context.Context, In) error) http.HandlerFunc {
	return answering(func(ctx context.Context, in In) (struct{}, error) { return struct{}{}, change(ctx, in) })
}

// servePeers answers other nodes until ctx ends.
func (n *Node) servePeers(ctx context.Context) {
	routes := http.NewServeMux()
	routes.Handle("POST "+pathHello, answering(n.answerHello))
	routes.Handle("POST "+pathApply, changing(n.applyForPeer))
	routes.Handle("POST "+pathMembers, changing(n.changeHere))
	routes.Handle("POST "+pathJoin, changing(n.admit))
	routes.Handle("POST "+pathGone, answering(func(
		ctx context.Context, gone raft.ServerID,
	) (bid, error) {
		return n.bid(ctx, gone), nil
	}))
	if n.cfg.Handler != nil {
		routes.Handle("/", n.cfg.Handler)
	}
	s := &http.Server{
		Handler:           n.bounded(n.forUs(routes)),
		ReadHeaderTimeout: handshakeTimeout, ReadTimeout: handshakeTimeout, MaxHeaderBytes: maxHeader,
		WriteTimeout: 4*handshakeTimeout + n.cfg.EnqueueTimeout + n.cfg.ApplyTimeout, // two may go by waiting for a turn
		ErrorLog:     slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
		BaseContext:  func(net.Listener) context.Context { return ctx },
		ConnContext:  func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	s.SetKeepAlivesEnabled(false)
	_ = s.Serve(stream{m: n.mux, conns: n.mux.asking}) // ends when the mux is closed, as it should
	_ = s.Shutdown(context.WithoutCancel(ctx))         // waits for who is being answered
}

// connKey is the key of the *trackedConn in the context of a request.
type connKey struct{}

// bounded reads a request and has it answered. Only few large ones are in memory at once,
// and none of them holds up small ones.
func (n *Node) bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := r.Context().Value(connKey{}).(*trackedConn)
		if r.ContentLength < 0 || r.ContentLength > maxMessage {
			http.Error(w, fmt.Sprintf("say the length, of %d bytes at the most", maxMessage), http.StatusRequestEntityTooLarge)
			return
		}
		if r.ContentLength > smallMessage {
			if err := n.mux.takeTurn(n.mux.large, "large requests are at hand"); err != nil {
				refuse(w, err)
				return
			}
			defer func() { <-n.mux.large }()
			_ = conn.SetReadDeadline(time.Now().Add(handshakeTimeout)) // fails on a closed connection only
		}
		body, err := io.ReadAll(r.Body) // grows as it comes: the length is only a claim
		if err != nil {
			http.Error(w, "the body did not come", http.StatusBadRequest)
			return
		}
		if err := n.mux.takeTurn(n.mux.requests, "requests are being answered"); err != nil {
			refuse(w, err)
			return
		}
		defer func() { <-n.mux.requests }()
		conn.leave()
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	})
}

// forUs refuses what a node of another cluster asks for, where addresses got mixed up, and
// what is for the leader and came to another node. One that has joined may not have
// learned yet which cluster that is, and a hello tells of both clusters.
func (n *Node) forUs(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := r.Context().Value(connKey{}).(*trackedConn).preamble
		ours := n.fsm.cluster()
		switch {
		case ours != "" && from.cluster != "" && from.cluster != ours && r.URL.Path != pathHello:
			err := fmt.Errorf("%w: the asking node is of cluster %q, this one of %q", ErrInvalid, from.cluster, ours)
			n.log.Warn("refusing a peer's request", "remote", r.RemoteAddr, "peer", string(from.source), "error", err)
			refuse(w, err)
		case r.Header.Get(toLeaderHeader) != "" && n.raft.State() != raft.Leader:
			refuse(w, ErrNotLeader)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func (n *Node) answerHello(_ context.Context, from *hello) (hello, error) {
	h := n.hello()
	if _, leader := n.raft.LeaderWithID(); leader != "" {
		known := n.knows(from.raftID())
		h.Member = &known
	}
	return h, nil
}

// applyForPeer writes what a follower has sent. It is decoded first: an entry
// that nobody understands must never get into the log.
func (n *Node) applyForPeer(ctx context.Context, data []byte) error {
	c, err := decodeCommand(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.Op == opLead || c.Op == opSavePosition {
		return fmt.Errorf("%w: %s can't be written for another node", ErrInvalid, c.Op)
	}
	_, err = n.applyLocal(ctx, c.Op, data)
	return err
}

// otherLeader is the address of the leader, as long as another node is it.
func (n *Node) otherLeader() (addr string, err error) {
	if err := n.usable(); err != nil {
		return "", err
	}
	_, id := n.raft.LeaderWithID()
	if id == "" || id == n.dir.id.raftID() || n.mux == nil {
		return "", ErrNoLeader
	}
	addr, ok := n.members.address(id)
	if !ok {
		return "", fmt.Errorf("%w: the address of %s is not known", ErrNoLeader, id)
	}
	return addr, nil
}

// RoundTrip implements http.RoundTripper: the request is answered by the Config.Handler
// of the member that the URL's host names, or of the leader when it names none; no node
// asks itself. ErrNoLeader, ErrNotLeader and ErrNotMember mean that nobody has looked at
// it, UnknownOutcomeError that somebody may have.
func (n *Node) RoundTrip(r *http.Request) (*http.Response, error) {
	addr, err := n.otherLeader()
	r = r.Clone(r.Context())
	r.Header.Del(toLeaderHeader)
	if r.URL.Host == "" {
		r.Header.Set(toLeaderHeader, "1")
	} else if m, ok := n.member(r.URL.Host); ok && n.mux != nil {
		err = n.usable()
		addr, _ = n.members.address(m.ID)
	} else {
		err = fmt.Errorf("asking node %s: %w", r.URL.Host, ErrNotMember)
	}
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nothing was read
		}
		return nil, err
	}
	r.URL.Scheme, r.URL.Host = "http", addr
	resp, reached, err := n.exchange(r)
	if err != nil && !reached {
		err = fmt.Errorf("%w: %w", ErrNoLeader, err)
	}
	return resp, err
}

// forward has the leader carry out a request.
func (n *Node) forward(ctx context.Context, o op, path string, in any) error {
	addr, err := n.otherLeader()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.EnqueueTimeout+n.cfg.ApplyTimeout)
	defer cancel()
	reached, err := n.post(ctx, addr, path, in, new(struct{}))
	switch {
	case err != nil && !reached:
		return fmt.Errorf("%s: %w: %w", o, ErrNoLeader, err)
	case err != nil:
		return fmt.Errorf("%s at the leader: %w", o, err)
	}
	return nil
}

// post asks a node and reads its answer; what is said of exchange is true of it.
func (n *Node) post(ctx context.Context, addr, path string, in, out any) (reached bool, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return false, fmt.Errorf("encoding request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	resp, reached, err := n.exchange(r)
	if err != nil {
		return reached, err
	}
	defer resp.Body.Close()
	if err = json.NewDecoder(io.LimitReader(resp.Body, maxMessage)).Decode(out); err != nil ||
		resp.StatusCode != http.StatusOK {
		err = &UnknownOutcomeError{path, fmt.Errorf("the node at %s gave no answer that this release understands: %s", addr,
			resp.Status)}
	}
	return true, err
}

// exchange sends a request. While the other node is not reached, it can't have done
// anything; later an error is what it says, or an UnknownOutcomeError.
func (n *Node) exchange(r *http.Request) (resp *http.Response, reached bool, err error) {
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached = true }}
	resp, err = n.peers.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	switch {
	case err != nil && reached:
		return nil, true, &UnknownOutcomeError{r.URL.Path, fmt.Errorf("asking peer %s: %w", r.URL.Host, err)}
	case err != nil:
		return nil, false, err
	case resp.Header.Get(refusedHeader) == "":
		return resp, true, nil
	}
	defer resp.Body.Close()
	var said wireError
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMessage)).Decode(&said); err != nil {
		return nil, true, &UnknownOutcomeError{r.URL.Path, err}
	}
	return nil, true, &said
}
