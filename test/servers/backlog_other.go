//go:build !linux

package servers

import (
	"errors"
	"net"
)

func setBacklog(net.Listener, int) error {
	return errors.New("a host that swallows packets can be played on Linux only")
}
