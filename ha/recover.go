package ha

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/binlog-outbox/binlog-outbox/position"
)

// Recovery says how to bring a cluster back that has lost the majority of its
// voters for good. It works on the data directory of a node that does not run.
type Recovery struct {
	// DataDir is that of the node's Config, NodeID too; an empty NodeID means
	// whosever the directory is.
	NodeID, DataDir string
	// Survivors are the names of the voters that the cluster goes on with; empty
	// means NodeID alone, to which the others are added again with empty
	// directories. With more than one, each of them must be recovered with the
	// same list.
	Survivors []string
	// DryRun looks and changes nothing.
	DryRun bool
	// Reason and By go into the audit list.
	Reason, By string
	Logger     *slog.Logger
}

// Recovered is what a recovery begins from.
type Recovered struct {
	NodeID  string `json:"node_id"`
	Cluster string `json:"cluster"`
	// LastTerm and LastIndex are of the last entry of the log. Of several
	// survivors, the one with the higher term, then the higher index, has most.
	LastTerm  uint64 `json:"last_term"`
	LastIndex uint64 `json:"last_index"`
	// Before are the members so far, After the voters from now on.
	Before []string `json:"before"`
	After  []string `json:"after"`
	// Positions are where the connectors go on. Entries that this node has and
	// the majority never confirmed are counted as confirmed.
	Positions map[string]position.Position `json:"positions"`
}

// Recover makes a node's directory one of a cluster of Survivors, with all that
// is in its log. Nodes that are left out must never come back with their old
// directories: they would be another cluster that publishes the same.
//
// It refuses a directory that is in use, damaged, foreign or empty.
func Recover(ctx context.Context, r Recovery) (_ *Recovered, err error) {
	if r.By == "" {
		return nil, fmt.Errorf("%w: a recovery needs who asks for it", ErrInvalid)
	}
	empty := &StoreError{Path: r.DataDir, Err: fmt.Errorf("%w: there is no state to recover from", ErrIncomplete),
		Remedy: "recover a node that has some"}
	// Before the directory is opened, which would make it a node's.
	switch id, err := readIdentity(r.DataDir, r.NodeID); {
	case err != nil:
		return nil, err
	case id == nil:
		return nil, empty
	default:
		r.NodeID = id.Name
	}
	failed := func(error) {} // each access returns its error, too
	raftLog := newRaftLogger(r.Logger, true)
	dir, err := openDataDir(r.DataDir, r.NodeID, raftLog, failed)
	if err != nil {
		return nil, fmt.Errorf("opening data directory: %w", err)
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	if dir.fresh {
		return nil, empty
	}
	machine := newFSM(failed)
	machine.setOrigin(dir.id.Cluster)
	had, term, err := replay(ctx, dir, machine)
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	_, last, err := dir.log.bounds()
	if err != nil {
		return nil, err
	}
	out := &Recovered{NodeID: r.NodeID, Cluster: machine.cluster(), LastTerm: term, LastIndex: max(last, machine.index),
		Positions: map[string]position.Position{}}
	for name, st := range machine.connectors() {
		out.Positions[name] = st.Position
	}
	for _, s := range had.Servers {
		out.Before = append(out.Before, nodeName(s.ID))
	}
	next, err := r.survivors(dir.id.raftID(), had)
	if err != nil {
		return nil, err
	}
	for _, s := range next.Servers {
		out.After = append(out.After, nodeName(s.ID))
	}
	if r.DryRun {
		return out, nil
	}
	return out, r.write(dir, raftLog, next, out)
}

// survivors picks the voters of the new configuration from the old one: their
// ids are of their data directories, and nobody else knows them.
func (r *Recovery) survivors(self raft.ServerID, had raft.Configuration) (next raft.Configuration, err error) {
	names := r.Survivors
	if len(names) == 0 {
		names = []string{r.NodeID}
	}
	if !slices.Contains(names, r.NodeID) {
		return next, fmt.Errorf("%w: node %q is not among the survivors %s", ErrInvalid, r.NodeID, strings.Join(names, ", "))
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i := slices.IndexFunc(had.Servers, func(s raft.Server) bool { return nodeName(s.ID) == name })
		switch {
		case i >= 0 && (name != r.NodeID || had.Servers[i].ID == self):
			next.Servers = append(next.Servers, raft.Server{Suffrage: raft.Voter, ID: had.Servers[i].ID,
				Address: had.Servers[i].Address})
		case i < 0 && name != r.NodeID:
			return next, fmt.Errorf("%w: %q; name those whose directories are left, the others are added again later",
				ErrNotMember, name)
		default:
			return next, fmt.Errorf("%w: this directory is of %s, which had been removed from the cluster", ErrNotMember, self)
		}
	}
	return next, nil
}

// write makes the new state: a snapshot with the new configuration, without a log.
func (r *Recovery) write(dir *dataDir, raftLog hclog.Logger, next raft.Configuration, out *Recovered) error {
	conf := DefaultConfig()
	// unused, but checked
	conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaseTimeout = time.Second, time.Second, time.Second
	_, trans := raft.NewInmemTransport(raft.ServerAddress(r.NodeID))
	defer trans.Close() //nolint:errcheck // in memory, has nothing open
	machine := &noted{newFSM(func(error) {}), AuditEntry{
		Index: out.LastIndex, At: time.Now().UTC().Truncate(time.Microsecond), By: r.By, Action: "recover", Reason: r.Reason,
		Detail: fmt.Sprintf("on %s at term %d, index %d: from %s to %s", r.NodeID, out.LastTerm, out.LastIndex,
			strings.Join(out.Before, ", "), strings.Join(out.After, ", ")),
	}}
	err := raft.RecoverCluster(conf.raftConfig(dir.id.raftID(), raftLog, nil), machine, dir.log, dir.log, dir.snaps, trans,
		next)
	if err != nil {
		return fmt.Errorf("recovering %s: %w", r.DataDir, err)
	}
	return nil
}

// noted is a state machine whose snapshot has one audit entry more.
type noted struct {
	*fsm
	entry AuditEntry
}

// Snapshot implements raft.FSM.
func (n *noted) Snapshot() (raft.FSMSnapshot, error) {
	snap, err := n.fsm.Snapshot()
	if err == nil {
		img := snap.(fsmSnapshot).img
		img.Audit = append(slices.Clone(img.Audit), n.entry)
	}
	return snap, err
}

// replay brings a state machine to the end of what a directory holds, and
// returns the last configuration and the term of the last entry.
func replay(ctx context.Context, dir *dataDir, machine *fsm) (conf raft.Configuration, term uint64, err error) {
	snaps, err := dir.snaps.List()
	if err != nil {
		return conf, 0, storeError(dir.path, err)
	}
	var from uint64
	if len(snaps) > 0 { // newest first, and verified
		meta, r, err := dir.snaps.Open(snaps[0].ID)
		if err != nil {
			return conf, 0, storeError(dir.path, err)
		}
		if err := machine.Restore(r); err != nil {
			return conf, 0, err
		}
		from, term, conf = meta.Index, meta.Term, meta.Configuration
		machine.index = meta.Index
	}
	_, last, err := dir.log.bounds()
	if err != nil {
		return conf, 0, err
	}
	for i := from + 1; i <= last; i++ {
		if ctx.Err() != nil {
			return conf, 0, context.Cause(ctx)
		}
		var l raft.Log
		if err := dir.log.GetLog(i, &l); err != nil {
			return conf, 0, err
		}
		term = l.Term
		switch l.Type {
		case raft.LogCommand:
			machine.Apply(&l)
			if machine.failed != nil {
				return conf, 0, machine.failed
			}
		case raft.LogConfiguration:
			conf = raft.DecodeConfiguration(l.Data)
		}
	}
	return conf, term, nil
}

// Restoration says how to begin a data directory from a saved snapshot.
type Restoration struct {
	NodeID, DataDir string
	// From is what Node.Snapshot wrote.
	From io.Reader
	// Reason and By go into the audit list.
	Reason, By string
	Logger     *slog.Logger
}

// Restore begins a new cluster with the state of a snapshot, in an empty data
// directory: a cluster of this node alone, to which the others are added when
// they start with empty directories. The cluster keeps its id, so that saved
// snapshots of it stay its own; the one that it is taken from must be gone.
func Restore(ctx context.Context, r Restoration) (_ *Recovered, err error) {
	if r.By == "" || !validName(r.NodeID) {
		return nil, fmt.Errorf("%w: restoring needs the node's name and who asks for it", ErrInvalid)
	}
	img, err := readImage(r.From)
	if err != nil {
		return nil, fmt.Errorf("reading the saved snapshot: %w", err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	raftLog := newRaftLogger(r.Logger, true)
	dir, err := openDataDir(r.DataDir, r.NodeID, raftLog, func(error) {})
	if err != nil {
		return nil, fmt.Errorf("opening data directory: %w", err)
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	if !dir.fresh {
		return nil, &StoreError{Path: r.DataDir, Err: errors.New("the directory has state already"),
			Remedy: "restore into an empty directory"}
	}
	if img.Cluster == "" {
		img.Cluster = uuid.NewString()
	}
	out := &Recovered{NodeID: r.NodeID, Cluster: img.Cluster, LastTerm: img.Lead.Term + 1, LastIndex: 1,
		After: []string{r.NodeID}, Positions: map[string]position.Position{}}
	for name, st := range img.Connectors {
		out.Positions[name] = st.Position
	}
	img.Audit = append(img.Audit, AuditEntry{
		Index: out.LastIndex, At: time.Now().UTC().Truncate(time.Microsecond), By: r.By, Action: "restore", Reason: r.Reason,
		Detail: fmt.Sprintf("on %s, taken in term %d", r.NodeID, img.Lead.Term),
	})
	self := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: dir.id.raftID(),
		Address: raft.ServerAddress(r.NodeID)}}}
	_, trans := raft.NewInmemTransport(raft.ServerAddress(r.NodeID))
	defer trans.Close() //nolint:errcheck // in memory, has nothing open
	// The term goes on, or runs of new leaders would be older than the stored one's.
	if err := dir.log.SetUint64([]byte(keyCurrentTerm), out.LastTerm); err != nil {
		return nil, err
	}
	sink, err := dir.snaps.Create(raft.SnapshotVersionMax, out.LastIndex, out.LastTerm, self, 1, trans)
	if err != nil {
		return nil, storeError(r.DataDir, err)
	}
	if err := (fsmSnapshot{img}).Persist(sink); err != nil {
		return nil, storeError(r.DataDir, err)
	}
	return out, nil
}
