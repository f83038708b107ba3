package router

import (
	"strconv"
	"strings"
)

// Follow makes the configuration that of a release of Debezium ("2.7" to "3.7"),
// where releases send different records. It changes what no option of Debezium does.
//
//   - Context headers: none up to 3.1, three in 3.2 and 3.3, four since 3.4.
//   - A TIMESTAMP of zeros: the epoch up to 3.5, null in a nullable column since 3.6.
//   - A column that is missing and was to go into the envelope: an error up to 3.5,
//     whatever the option says.
//   - TINYINT: INT8 in schemas since 3.7, INT16 before.
//   - Records in nested arrays of an expanded payload: their members' names begin
//     with "null." up to 2.7.
func (c *Config) Follow(release string) {
	upTo := func(major, minor int) bool {
		a, b := parseRelease(release)
		return a < major || a == major && b <= minor
	}
	switch {
	case upTo(3, 1):
		c.Context = nil
	case upTo(3, 3) && len(c.Context) > 3:
		c.Context = c.Context[:3]
	}
	c.Modes.ZeroTimestampIsEpoch = upTo(3, 5)
	c.missingEnvelopeFails = upTo(3, 5)
	c.Modes.TinyIntIsInt8 = !upTo(3, 6)
	c.nullPaths = upTo(2, 7)
}

// parseRelease reads "3.10" as its numbers; what is none counts as 0.
func parseRelease(text string) (major, minor int) {
	first, second, _ := strings.Cut(text, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}
