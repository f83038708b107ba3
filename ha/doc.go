// Package ha is the cluster of connector nodes: hashicorp/raft with one or more
// voters, leadership as a context that ends with a cause, and the replicated
// store of connector states (positions, run states, decisions). It knows nothing
// of MySQL or Kafka, and raft's types stop here.
//
// Nodes are known by name; the id that raft sees is new with each new data
// directory, so that a node which has lost its disk, and with it its votes, is
// another one. It replaces the old one by itself. A leader whose process is
// killed is replaced within tens of milliseconds, see missKilledLeaders; one that
// hangs or is cut off, within one to three HeartbeatTimeouts.
package ha
