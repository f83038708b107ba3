// Package canaltest has stand-ins for a binlog source: events built from scratch
// (Binlog), a server that speaks the dump protocol and serves them (Server), and
// a scripted source of whole transactions for tests above canal (Source).
package canaltest
