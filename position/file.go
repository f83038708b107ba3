package position

import (
	"fmt"
	"strconv"
	"strings"
)

// CompareFiles orders two binlog file names of one server: negative when a is
// older. The suffix is compared as a number, since the server goes from .999999
// to .1000000. Files with different base names are different histories
// (log_bin was changed): that is an error, not an order.
func CompareFiles(a, b string) (int, error) {
	baseA, numA, err := splitFile(a)
	if err != nil {
		return 0, err
	}
	baseB, numB, err := splitFile(b)
	if err != nil {
		return 0, err
	}
	if baseA != baseB {
		return 0, fmt.Errorf("binlog files %q and %q have different base names: they are different histories", a, b)
	}
	switch {
	case numA < numB:
		return -1, nil
	case numA > numB:
		return 1, nil
	}
	return 0, nil
}

// FileNumber returns the numeric suffix of a binlog file name, 0 if it has none.
func FileNumber(name string) uint64 {
	_, n, err := splitFile(name)
	if err != nil {
		return 0
	}
	return n
}

func splitFile(name string) (base string, number uint64, err error) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", 0, fmt.Errorf("binlog file name %q has no numeric suffix", name)
	}
	n, err := strconv.ParseUint(name[i+1:], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("binlog file name %q has no numeric suffix", name)
	}
	return name[:i], n, nil
}
