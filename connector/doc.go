// Package connector runs one connector: its states (running, paused, stopped,
// failed) and its sessions. A session opens the sink, opens the source where the sink
// says, and then reads, routes, converts and publishes until its context ends or
// anything fails; there is no repair inside a session, only the next session.
package connector
