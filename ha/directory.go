package ha

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// directory knows where the members of the cluster are and what their
// certificates say: from the configured peers and, for nodes that joined later,
// from raft's configuration.
type directory struct {
	self   raft.Server // this node, which may not be a member yet
	static []Peer
	role   string                    // TLS.Role
	raft   atomic.Pointer[raft.Raft] // nil until raft has started
}

var _ raft.ServerAddressProvider = (*directory)(nil)

func (d *directory) servers() []raft.Server {
	r := d.raft.Load()
	if r == nil {
		return nil
	}
	return r.GetConfiguration().Configuration().Servers
}

// address finds a node's address by its name at each call; the one in raft's
// configuration is of the day the node was added.
func (d *directory) address(id raft.ServerID) (string, bool) {
	if p, ok := peer(d.static, nodeName(id)); ok {
		return p.Addr, true
	}
	if id == d.self.ID {
		return string(d.self.Address), true
	}
	for _, s := range d.servers() {
		if s.ID == id {
			return string(s.Address), true
		}
	}
	return "", false
}

// ServerAddr implements raft.ServerAddressProvider. The address carries the id:
// see target.
func (d *directory) ServerAddr(id raft.ServerID) (raft.ServerAddress, error) {
	addr, ok := d.address(id)
	if !ok {
		return "", fmt.Errorf("node %s is no member and not among the configured peers", id)
	}
	return raft.ServerAddress(string(id) + "@" + addr), nil
}

// target splits what ServerAddr made. Raft connections say which node they are
// meant for: one that came back at the same address with an empty disk has a new
// id and must not stand in for the one that had promised something.
func target(addr string) (id raft.ServerID, hostPort string) {
	if i := strings.LastIndexByte(addr, '@'); i >= 0 {
		return raft.ServerID(addr[:i]), addr[i+1:]
	}
	return "", addr
}

// certName is the name that the certificate of the node at addr must be valid for.
func (d *directory) certName(addr string) string {
	for _, p := range d.static {
		if p.Addr == addr {
			return p.certName()
		}
	}
	return hostOf(addr)
}

// certNames are the names of all that may connect to this node.
func (d *directory) certNames() []string {
	var names []string
	for _, p := range d.static {
		names = append(names, p.certName())
	}
	for _, s := range d.servers() {
		if _, ok := peer(d.static, nodeName(s.ID)); !ok {
			names = append(names, hostOf(string(s.Address)))
		}
	}
	names = append(names, d.role)
	return slices.DeleteFunc(names, func(s string) bool { return s == "" })
}

// nodeName is the configured name in a Raft id.
func nodeName(id raft.ServerID) string {
	name, _, _ := strings.Cut(string(id), "/")
	return name
}
