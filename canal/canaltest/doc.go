// Package canaltest has stand-ins for a binlog source: events built from scratch
// (Binlog), and a server that speaks the dump protocol and serves them (Server).
package canaltest
