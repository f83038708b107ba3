package chaos

import (
	"fmt"
	"os"
	"syscall"
)

// smallDisk mounts a small file system at dir, so that it can become full. It needs
// the rights of root; false without them.
func smallDisk(dir string) (ok bool) {
	if os.Geteuid() != 0 {
		return false
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m,mode=0755"); err != nil {
		return false // containers often may not mount
	}
	return true
}

func unmount(dir string) error {
	if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", dir, err)
	}
	return nil
}
