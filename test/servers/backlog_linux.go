package servers

import (
	"errors"
	"net"
	"syscall"
)

// setBacklog says how many connections wait until they are accepted; the system
// drops the packets of further ones.
func setBacklog(l net.Listener, n int) error {
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) })
	return errors.Join(err, failed)
}
