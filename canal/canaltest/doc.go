// Package canaltest has stand-ins for a binlog source: events built from scratch
// (Binlog), a server that speaks the dump protocol and serves them (Server), and one with
// transactions of outbox rows (OutboxServer).
package canaltest
