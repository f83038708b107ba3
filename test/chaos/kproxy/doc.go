// Package kproxy is a TCP proxy that knows where a Kafka request begins and ends,
// and which kind it is: so that a test can lose, hold back, repeat or delay an
// EndTxn and leave the rest alone. Plain faults of the network are those of
// test/servers.Proxy, which may stand in front of it.
package kproxy
