package node

import (
	"path/filepath"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// raftConfig takes the cluster's settings from the tree.
func raftConfig(cfg *config.Config) ha.Config {
	rc := ha.DefaultConfig()
	rc.NodeID, rc.DataDir = cfg.Node.ID, filepath.Join(cfg.Node.DataDir, "raft")
	rc.Listen, rc.Advertise, rc.Insecure = cfg.Cluster.Listen, cfg.Cluster.Advertise, cfg.Cluster.Insecure
	c := &cfg.Cluster
	rc.HeartbeatTimeout, rc.ElectionTimeout, rc.LeaseTimeout = c.HeartbeatTimeout, c.ElectionTimeout, c.LeaseTimeout
	rc.StepDownCooldown, rc.PromoteAfter = c.StepDownCooldown, c.PromoteAfter
	rc.Witness, rc.Join = c.Witness, c.Join
	for _, p := range cfg.Cluster.ParsedPeers() {
		rc.Peers = append(rc.Peers, ha.Peer{ID: p.ID, Addr: p.Address})
	}
	if t := cfg.Cluster.TLS; t.Cert != "" {
		rc.TLS = &ha.TLS{CertFile: t.Cert, KeyFile: t.Key, CAFile: t.CA, Role: t.Role}
	}
	return rc
}
