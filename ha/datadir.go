package ha

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// The data directory: node.json says whose it is, raft.db holds the log and the
// votes, snapshots/ the state up to some entry. The three belong together, and a
// directory of which a part is missing or foreign is refused: starting with it
// would take positions back, or to another cluster's.
const (
	nodeFile     = "node.json"
	logFile      = "raft.db"
	snapshotDir  = "snapshots"
	dirFormat    = 1
	keepSnapshot = 2
)

// startAnew ends the remedies of what can't be repaired.
const startAnew = "remove the directory to start as a new node (the positions then come from the other voters; " +
	"without any they are forgotten)"

// identity is the content of node.json.
type identity struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// UUID is new with each new directory: a node that has lost its disk has
	// forgotten its votes and must not pass for the one it was.
	UUID string `json:"uuid"`
	// Cluster is the id of the cluster, once it is known.
	Cluster string `json:"cluster,omitempty"`
}

// raftID is the node's id in Raft.
func (i identity) raftID() raft.ServerID { return raft.ServerID(i.Name + "/" + i.UUID) }

// dataDir is an opened and verified data directory.
type dataDir struct {
	path  string
	id    identity // as it was at the start; never changed
	log   *logStore
	snaps *raft.FileSnapshotStore
	// fresh is true when the directory holds no Raft state yet.
	fresh bool
}

// openDataDir takes the directory for this process and verifies that what is in
// it is whole and this node's. onFailure is called at the first failed write.
func openDataDir(path, name string, logger hclog.Logger, onFailure func(error)) (_ *dataDir, err error) {
	if err := os.MkdirAll(filepath.Join(path, snapshotDir), 0o700); err != nil {
		return nil, &StoreError{Path: path, Err: err,
			Remedy: "make the directory writable for this user or set another data directory"}
	}
	d := &dataDir{path: path}
	// Before anything is touched, so that a refusal leaves the directory as it was.
	id, err := readIdentity(path, name)
	if err != nil {
		return nil, err
	}
	_, statErr := os.Stat(filepath.Join(path, logFile))
	if id != nil && errors.Is(statErr, os.ErrNotExist) {
		return nil, &StoreError{
			Path: filepath.Join(path, logFile), Err: fmt.Errorf("%w: %s is there but the log is not", ErrIncomplete, nodeFile),
			Remedy: "put the file back, or " + startAnew,
		}
	}
	if d.log, err = openLogStore(filepath.Join(path, logFile), onFailure); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.log.Close())
		}
	}()
	if d.snaps, err = raft.NewFileSnapshotStoreWithLogger(path, keepSnapshot, logger); err != nil {
		return nil, &StoreError{Path: filepath.Join(path, snapshotDir), Err: err,
			Remedy: "make the directory writable for this user"}
	}
	// Now that the lock is held: somebody may have been here in between.
	if id, err = readIdentity(path, name); err != nil {
		return nil, err
	}
	if err := d.verify(id); err != nil {
		return nil, err
	}
	if id == nil {
		id = &identity{Format: dirFormat, Name: name, UUID: uuid.NewString()}
		// In this order, so that a crash leaves an empty log without a node.json.
		if err := d.log.setOwner(id.UUID); err != nil {
			return nil, err
		}
		if err := writeIdentity(path, *id); err != nil {
			return nil, err
		}
	}
	d.id = *id
	return d, nil
}

// verify checks that newest snapshot and log together hold everything that was
// ever stored here.
func (d *dataDir) verify(id *identity) error {
	first, last, err := d.log.bounds()
	if err != nil {
		return err
	}
	if id != nil {
		if err := d.log.checkOwner(id.UUID); err != nil {
			return err
		}
	}
	snaps, err := d.scanSnapshots()
	if err != nil {
		return err
	}
	d.fresh = last == 0 && len(snaps) == 0
	if id == nil && (last > 0 || len(snaps) > 0) {
		return &StoreError{
			Path:   filepath.Join(d.path, nodeFile),
			Err:    fmt.Errorf("%w: there is Raft state in the directory but nothing that says whose", ErrIncomplete),
			Remedy: "put the file back, or " + startAnew,
		}
	}
	var covered, highest uint64 // by readable snapshots; by all of them
	var broken error
	for _, s := range snaps {
		highest = max(highest, s.index)
		img, err := d.loadSnapshot(s.name)
		if err != nil {
			if errors.Is(err, ErrNewerFormat) {
				return err
			}
			broken = err
			continue
		}
		if id != nil && id.Cluster != "" && img.Cluster != id.Cluster {
			return &StoreError{
				Path: filepath.Join(d.path, snapshotDir, s.name),
				Err: fmt.Errorf("%w: the snapshot is of cluster %q, this node belongs to cluster %q", ErrForeignState,
					img.Cluster, id.Cluster),
				Remedy: "remove the snapshot if it was copied here by mistake, or " + startAnew,
			}
		}
		covered = max(covered, s.index)
	}
	if last > covered && first > covered+1 || highest > max(covered, last) || len(snaps) > 0 && covered == 0 {
		err := fmt.Errorf("%w: the log holds entries %d to %d, readable snapshots go up to %d of %d", ErrIncomplete, first,
			last, covered, highest)
		if broken != nil {
			err = fmt.Errorf("%w; %w", err, broken)
		}
		return &StoreError{
			Path: filepath.Join(d.path, snapshotDir), Err: err,
			Remedy: "restore the whole directory as it was at one moment, or " + startAnew,
		}
	}
	return d.log.check(covered+1, last)
}

type snapshotName struct {
	name  string
	index uint64
}

// scanSnapshots lists the finished snapshots by what their directories' names
// ("term-index-milliseconds") say, also those that can't be read: raft passes
// over such a one in silence and goes on with an older state.
func (d *dataDir) scanSnapshots() ([]snapshotName, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, snapshotDir))
	if err != nil {
		return nil, &StoreError{Path: filepath.Join(d.path, snapshotDir), Err: err,
			Remedy: "make the directory readable for this user"}
	}
	var out []snapshotName
	for _, e := range entries {
		parts := strings.Split(e.Name(), "-")
		if !e.IsDir() || len(parts) != 3 || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		index, err := strconv.ParseUint(parts[1], 10, 64)
		if err != nil {
			continue
		}
		out = append(out, snapshotName{e.Name(), index})
	}
	return out, nil
}

func (d *dataDir) loadSnapshot(name string) (*image, error) {
	path := filepath.Join(d.path, snapshotDir, name)
	remedy := "restore the whole directory as it was at one moment, or " + startAnew
	_, r, err := d.snaps.Open(name)
	if err != nil {
		return nil, &StoreError{Path: path, Err: fmt.Errorf("%w: opening snapshot: %w", ErrCorrupt, err), Remedy: remedy}
	}
	defer r.Close()
	img, err := readImage(r)
	if errors.Is(err, ErrNewerFormat) {
		remedy = "run the release that wrote it, or a newer one"
	}
	if err != nil {
		return nil, &StoreError{Path: path, Err: err, Remedy: remedy}
	}
	return img, nil
}

// readIdentity returns nil without an error when there is no node.json. An empty
// name means anybody's.
func readIdentity(dir, name string) (*identity, error) {
	path := filepath.Join(dir, nodeFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &StoreError{Path: path, Err: err, Remedy: "make the file readable for this user"}
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil || id.Name == "" || id.UUID == "" {
		return nil, &StoreError{
			Path: path, Err: fmt.Errorf("%w: not a node identity", ErrCorrupt),
			Remedy: "put the file back, or " + startAnew,
		}
	}
	if id.Format > dirFormat {
		return nil, &StoreError{
			Path: path, Err: fmt.Errorf("%w: format %d, this release knows up to %d", ErrNewerFormat, id.Format, dirFormat),
			Remedy: "run the release that wrote it, or a newer one",
		}
	}
	if name != "" && id.Name != name {
		return nil, &StoreError{
			Path: path, Err: fmt.Errorf("%w: the directory is of node %q, this is node %q", ErrForeignState, id.Name, name),
			Remedy: "give the node its own directory, or its old name",
		}
	}
	return &id, nil
}

// writeIdentity replaces node.json so that a crash leaves the old or the new one.
func writeIdentity(dir string, id identity) error {
	path := filepath.Join(dir, nodeFile)
	fail := func(err error) error {
		return &StoreError{Path: path, Err: err, Remedy: "free space and make the directory writable for this user"}
	}
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fail(err)
	}
	f, err := os.CreateTemp(dir, nodeFile+".*.tmp")
	if err != nil {
		return fail(err)
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fail(errors.Join(err, os.Remove(f.Name())))
	}
	return syncDir(dir, fail)
}

func syncDir(dir string, fail func(error) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fail(err)
	}
	return nil
}

func (d *dataDir) close() error { return d.log.Close() }
