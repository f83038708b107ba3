package harness

import "syscall"

// sysProcAttr lets the connector end with the test, however that ends. The signal
// is bound to the thread that started it: see Start.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
