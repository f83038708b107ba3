//go:build unix && !linux

package servers

import "syscall"

// sysProcAttr puts a server into a process group of its own. Other systems than
// Linux can't bind a server's life to that of its parent.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
