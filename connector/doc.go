// Package connector runs one connector: its states (running, paused, stopped,
// failed) and its terms. A term opens the sink, opens the source where the sink
// says, and then reads, routes, converts and publishes until its context ends or
// anything fails; there is no repair inside a term, only the next term.
package connector
