package servers

import "syscall"

// sysProcAttr puts a server into a process group of its own, so that ^C in a
// terminal reaches the program alone and it can stop its servers in order.
//
// A server that is not detached is killed by the kernel when its parent ends. That
// is bound to the thread which started it: see startProcess.
func sysProcAttr(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
