//go:build !linux

package chaos

func smallDisk(string) bool { return false }

func unmount(string) error { return nil }
