package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as "64MiB", "1GB" or a plain number.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// ParseSize reads a Size.
func ParseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is not a number of bytes such as 64MiB", text)
	}
	return Size(n * unit), nil
}

// String writes the largest binary unit that divides s.
func (s Size) String() string {
	for _, u := range []int{2, 1, 0} {
		if n := int64(s); n != 0 && n%sizeUnits[u].bytes == 0 {
			return strconv.FormatInt(n/sizeUnits[u].bytes, 10) + sizeUnits[u].name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseSize(string(text))
	if err == nil {
		*s = n
	}
	return err
}
