// Package ha is the cluster of connector nodes: hashicorp/raft with one or more
// voters, leadership as a context that ends with a cause, and the replicated
// store of connector states (positions, run states, decisions). It knows nothing
// of MySQL or Kafka, and raft's types stop here.
package ha
