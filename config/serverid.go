package config

import (
	"crypto/sha256"
	"encoding/binary"
)

// DerivedServerID returns the server_id that a node uses for a connector whose
// configuration names none. It is a hash of both names in the upper half of the
// range (2147483648 to 4294967294): the same after every restart, different on
// each node, and far from the small numbers that people give to real servers.
//
// MySQL ends an earlier dump connection that has the same server_id, so two
// nodes with one number would kick each other out without end.
func DerivedServerID(nodeID, connector string) uint32 {
	sum := sha256.Sum256([]byte(nodeID + "\x00" + connector))
	id := 1<<31 | binary.BigEndian.Uint32(sum[:4])>>1
	if id == 1<<32-1 {
		id--
	}
	return id
}
