package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// newCluster is what can be done to a cluster by way of one of its nodes, and to a
// node's data directory while the node does not run.
func newCluster(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Look at the nodes, change them, bring a cluster back that has lost its majority or its disks",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newClusterRecover(p), newClusterRestore(p))
	c.AddCommand(p.remote(c).clusterCommands()...)
	return c
}

func newClusterRecover(p *program) *cobra.Command {
	var peers []string
	var yes bool
	var reason string
	c := &cobra.Command{
		Use:   "recover",
		Short: "Go on with the nodes that are left when a majority is lost for good",
		Long: "Go on with the nodes that are left when a majority of the cluster is lost for good.\n\n" +
			"Stop all nodes that are left. Run this on each of them without --yes and compare the last\n" +
			"term, then the last index: the node with the highest has most. Run it there with --yes, empty\n" +
			"the data directories of the others, and start all; the others are added again by themselves.\n" +
			"What is lost is repeated, not skipped: with exactly-once delivery Kafka's own record of the\n" +
			"position decides. The nodes that are given up must never return with their old directories.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := p.raftDir()
			if err != nil {
				return err
			}
			done, err := ha.Recover(c.Context(), ha.Recovery{
				DataDir: dir, Survivors: peers, DryRun: !yes, Reason: reason, By: userName(),
				Logger: node.NewLogger(config.Log{Level: "warn"}, p.stderr),
			})
			if err != nil {
				return fmt.Errorf("recovering: %w", err)
			}
			return p.tellRecovered(done, yes)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&peers, "peers", nil, "`names` of the nodes that are left and keep their directories, this one "+
		"too; the same on each (default this one alone)")
	f.BoolVar(&yes, "yes", false, "do it, instead of telling what would be done")
	f.StringVar(&reason, "reason", "", "`why`, for the audit list")
	return c
}

func newClusterRestore(p *program) *cobra.Command {
	var id, from, reason string
	c := &cobra.Command{
		Use:   "restore",
		Short: "Begin an empty data directory from a saved snapshot",
		Long: "Begin a node's empty data directory from a saved snapshot. The node is a cluster of its own\n" +
			"then, to which the others are added when they start with empty directories. The cluster that\n" +
			"the snapshot is of must be gone.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if id == "" || from == "" {
				return &usageError{err: errors.New("restore needs --node and --from")}
			}
			dir, err := p.raftDir()
			if err != nil {
				return err
			}
			saved, err := os.Open(from)
			if err != nil {
				return fmt.Errorf("opening the snapshot: %w", err)
			}
			defer func() { err = errors.Join(err, saved.Close()) }()
			done, err := ha.Restore(c.Context(), ha.Restoration{
				NodeID: id, DataDir: dir, From: saved, Reason: reason, By: userName(),
				Logger: node.NewLogger(config.Log{Level: "warn"}, p.stderr),
			})
			if err != nil {
				return fmt.Errorf("restoring: %w", err)
			}
			return p.tellRecovered(done, true)
		},
	}
	f := c.Flags()
	f.StringVar(&id, "node", "", "the node's `name`, node.id of its configuration")
	f.StringVar(&from, "from", "", "`file` with the snapshot")
	f.StringVar(&reason, "reason", "", "`why`, for the audit list")
	return c
}

// raftDir is where the node that --data-dir belongs to keeps its part of the cluster.
func (p *program) raftDir() (string, error) {
	dir := p.dataDir
	if dir == "" {
		dir, _ = p.lookup(config.EnvPrefix + "DATA_DIR")
	}
	if dir == "" {
		var err error
		if dir, err = p.configuredDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "raft"), nil
}

// configuredDir is node.data_dir of the configuration file that is named. What
// references stand for is not asked for, apart from its own.
func (p *program) configuredDir() (string, error) {
	name := p.configFile
	if name == "" {
		name, _ = p.lookup(config.EnvPrefix + "CONFIG")
	}
	if name == "" {
		return "", &usageError{err: errors.New("name the node's directory with --data-dir, or its configuration with " +
			"--config")}
	}
	cfg, err := (&config.Builder{KeepReferences: true}).Build(config.File(name))
	if err != nil {
		return "", err
	}
	return (&config.Resolver{LookupEnv: p.lookup}).Resolve(cfg.Node.DataDir)
}

// userName is who is asking, as far as the system knows.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}

func (p *program) tellRecovered(r *ha.Recovered, done bool) error {
	asJSON, err := p.json()
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return writeRecovered(p.stdout, r, done)
}

func writeRecovered(w io.Writer, r *ha.Recovered, done bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s of cluster %s, last entry: term %d, index %d\n", r.NodeID, r.Cluster, r.LastTerm, r.LastIndex)
	if len(r.Before) > 0 {
		fmt.Fprintf(&b, "members so far: %s\n", strings.Join(r.Before, ", "))
	}
	fmt.Fprintf(&b, "voters from now on: %s\n", strings.Join(r.After, ", "))
	for _, name := range slices.Sorted(maps.Keys(r.Positions)) {
		fmt.Fprintf(&b, "connector %s goes on after %s\n", name, r.Positions[name])
	}
	if len(r.Positions) == 0 {
		b.WriteString("no connector has a position here\n")
	}
	if done {
		b.WriteString("done; start the node\n")
	} else {
		b.WriteString("nothing was changed; add --yes to do it\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
