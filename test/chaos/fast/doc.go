// Package fast runs whole connectors over the real Kafka sink, an in-process Kafka
// and a scripted binlog: many nodes that believe they lead, and a network that
// loses, delays and repeats requests. All waits are short, so that a schedule with
// ten takeovers is over in a second or two and many run at once.
//
// The clock is the real one: sarama holds locks while it waits for brokers, which
// virtual time can't pass over. The same schedules with a scripted sink in virtual
// time are in connector. What the in-process Kafka can't show is left to the runs
// on real servers.
package fast
