package ha

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Nodes ask each other: who are you, please write this or change the members
// (anyone to the leader), let me in, do you miss the leader too, and what the program
// around the node wants to know of the leader. One request per connection: all are rare. Fields that the other side does not know are passed over. A message is a length of four bytes, big endian, and JSON.

type peerRequest struct {
	Hello  *hello         `json:"hello,omitempty"`
	Apply  *applyRequest  `json:"apply,omitempty"`
	Member *memberRequest `json:"member,omitempty"`
	Join   *joinRequest   `json:"join,omitempty"`
	Gone   *goneRequest   `json:"gone,omitempty"`
	Ask    *askRequest    `json:"ask,omitempty"`
}

type peerResponse struct {
	Hello *hello `json:"hello,omitempty"`
	// Member says whether the asker is a member; nil when the answering node does
	// not know, having no leader.
	Member *bool      `json:"member,omitempty"`
	Bid    *bid       `json:"bid,omitempty"`
	Answer []byte     `json:"answer,omitempty"`
	Error  *wireError `json:"error,omitempty"`
}

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

// joinRequest asks the leader to be added.
type joinRequest struct {
	ID   string `json:"id"`
	Addr string `json:"addr"`
}

// goneRequest asks whether a node's port is refused at the answering node too.
type goneRequest struct {
	RaftID raft.ServerID `json:"raft_id"`
}

type applyRequest struct {
	Op      op     `json:"op"`
	Command []byte `json:"command"`
}

// wireError carries an error over the connection so that errors.Is and errors.As
// find the same on the other side.
type wireError struct {
	Code     string         `json:"code"`
	Op       string         `json:"op,omitempty"`
	Text     string         `json:"text"`
	Rejected *RejectedError `json:"rejected,omitempty"`
}

const (
	codeRejected = "rejected"
	codeUnknown  = "unknown_outcome"
)

// wireSentinel is the sentinel of a code; nothing was changed in all of them.
func wireSentinel(code string) error {
	switch code {
	case "not_leader":
		return ErrNotLeader
	case "no_leader":
		return ErrNoLeader
	case "busy":
		return ErrBusy
	case "shutting_down":
		return ErrNoLeader // that node goes away; another will lead
	case "invalid":
		return ErrInvalid
	case "not_member":
		return ErrNotMember
	case "quorum":
		return ErrQuorum
	case "no_other_voter":
		return ErrNoOtherVoter
	}
	return nil
}

func toWire(err error) *wireError {
	var rejected *RejectedError
	var unknown *UnknownOutcomeError
	w := &wireError{Code: codeUnknown, Text: err.Error()}
	switch {
	case errors.As(err, &rejected):
		w.Code, w.Rejected = codeRejected, rejected
	case errors.As(err, &unknown):
		w.Text = unknown.Err.Error()
	case errors.Is(err, ErrNotLeader):
		w.Code = "not_leader"
	case errors.Is(err, ErrNoLeader):
		w.Code = "no_leader"
	case errors.Is(err, ErrBusy):
		w.Code = "busy"
	case errors.Is(err, ErrShuttingDown):
		w.Code = "shutting_down"
	case errors.Is(err, ErrInvalid):
		w.Code = "invalid"
	case errors.Is(err, ErrNotMember):
		w.Code = "not_member"
	case errors.Is(err, ErrQuorum):
		w.Code = "quorum"
	case errors.Is(err, ErrNoOtherVoter):
		w.Code = "no_other_voter"
	}
	return w
}

func (w *wireError) toError(o op) error {
	if w.Code == codeRejected && w.Rejected != nil {
		return w.Rejected
	}
	if s := wireSentinel(w.Code); s != nil {
		if text := strings.TrimPrefix(w.Text, s.Error()+": "); text != w.Text {
			return fmt.Errorf("%s at the leader: %w: %s", o, s, text)
		}
		return fmt.Errorf("%s at the leader: %w", o, s)
	}
	return &UnknownOutcomeError{string(o), errors.New(w.Text)}
}

// ofUs refuses what a node of another cluster asks for, where addresses got mixed up.
// One that has joined may not have learned yet which cluster that is.
func (n *Node) ofUs(req *peerRequest, cluster string) error {
	ours := n.fsm.cluster()
	if ours == "" || cluster == "" || cluster == ours || req.Hello != nil {
		return nil // a hello tells of both clusters
	}
	return fmt.Errorf("%w: the asking node is of cluster %q, this one of %q", ErrInvalid, cluster, ours)
}

// servePeer answers one request, which has come as body.
func (n *Node) servePeer(ctx context.Context, conn net.Conn, from preamble, body []byte) {
	limit := n.cfg.EnqueueTimeout + n.cfg.ApplyTimeout
	_ = conn.SetDeadline(time.Now().Add(limit + time.Second)) // fails on a closed connection only
	var req peerRequest
	if err := json.Unmarshal(body, &req); err != nil {
		n.log.Warn("reading a peer's request", "remote", conn.RemoteAddr().String(), "error", err)
		return
	}
	var resp peerResponse
	refused := n.ofUs(&req, from.cluster)
	switch {
	case refused != nil:
		n.log.Warn("refusing a peer's request", "remote", conn.RemoteAddr().String(), "peer", string(from.source), "error", refused)
		resp.Error = toWire(refused)
	case req.Hello != nil:
		h := n.hello()
		resp.Hello = &h
		if _, leader := n.raft.LeaderWithID(); leader != "" {
			known := n.knows(req.Hello.raftID())
			resp.Member = &known
		}
	case req.Apply != nil:
		if err := n.applyForPeer(ctx, req.Apply); err != nil {
			resp.Error = toWire(err)
		}
	case req.Member != nil:
		if err := n.changeHere(ctx, req.Member); err != nil {
			resp.Error = toWire(err)
		}
	case req.Join != nil:
		if err := n.admit(ctx, req.Join); err != nil {
			resp.Error = toWire(err)
		}
	case req.Gone != nil:
		b := n.bid(ctx, req.Gone.RaftID)
		resp.Bid = &b
	case req.Ask != nil:
		var err error
		if resp.Answer, err = n.answer(ctx, req.Ask); err != nil {
			resp.Error = toWire(err)
		}
	default:
		resp.Error = toWire(fmt.Errorf("%w: unknown request", ErrInvalid))
	}
	if err := writeMessage(conn, &resp); err != nil {
		n.log.Warn("answering a peer", "remote", conn.RemoteAddr().String(), "error", err)
	}
}

// applyForPeer writes what a follower has sent. It is decoded first: an entry
// that nobody understands must never get into the log.
func (n *Node) applyForPeer(ctx context.Context, a *applyRequest) error {
	c, err := decodeCommand(a.Command)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if c.Op == opLead || c.Op == opSavePosition || c.Op != a.Op {
		return fmt.Errorf("%w: %s can't be written for another node", ErrInvalid, c.Op)
	}
	_, err = n.applyLocal(ctx, c.Op, a.Command)
	return err
}

// forward has the leader carry out a request.
func (n *Node) forward(ctx context.Context, leader raft.ServerID, o op, req *peerRequest) error {
	return n.forwardFor(ctx, leader, o, req, new(peerResponse))
}

// forwardFor does so and fills resp.
func (n *Node) forwardFor(ctx context.Context, leader raft.ServerID, o op, req *peerRequest, resp *peerResponse) error {
	addr, ok := n.members.address(leader)
	if !ok {
		return fmt.Errorf("%w: the address of %s is not known", ErrNoLeader, leader)
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.EnqueueTimeout+n.cfg.ApplyTimeout)
	defer cancel()
	sent, err := n.ask(ctx, addr, req, resp)
	switch {
	case err != nil && sent:
		return &UnknownOutcomeError{string(o), err}
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoLeader, err)
	case resp.Error != nil:
		return resp.Error.toError(o)
	}
	return nil
}

// ask sends one request. sent is true once any of it may have arrived.
func (n *Node) ask(ctx context.Context, addr string, req *peerRequest, resp *peerResponse) (sent bool, err error) {
	conn, err := n.mux.dial(ctx, addr, kindRequest)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := writeMessage(conn, req); err != nil {
		return true, fmt.Errorf("asking peer %s: %w", addr, err)
	}
	if err := readMessage(conn, resp); err != nil {
		return true, fmt.Errorf("asking peer %s: %w", addr, err)
	}
	return true, nil
}
