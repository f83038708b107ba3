package schema

import (
	"fmt"
	"strconv"
	"strings"
)

// decodeTemporal gives a TIME, DATETIME or TIMESTAMP exactly the column's number
// of fraction digits: go-mysql leaves the fraction out of a TIME when it is zero.
func (c *Column) decodeTemporal(s string) (any, error) {
	if c.Type == Time {
		s = oldNegativeTime(s)
	}
	dot := strings.IndexByte(s, '.')
	switch {
	case dot < 0 && c.FSP == 0:
		return s, nil
	case dot < 0:
		return s + ".000000"[:c.FSP+1], nil
	case len(s)-dot-1 != c.FSP:
		return nil, fmt.Errorf("value with %d fraction digits in a column of %d", len(s)-dot-1, c.FSP)
	}
	return s, nil
}

// oldNegativeTime repairs negative values of the TIME format from before MySQL
// 5.6.4, three bytes hhmmss with a sign, which go-mysql prints without the sign.
// TIME ends at 838 hours, so a larger one can't be anything else.
func oldNegativeTime(s string) string {
	if len(s) < 10 || strings.IndexByte(s, '.') >= 0 {
		return s
	}
	h, m, sec, ok := clock(s)
	if !ok || h <= 838 {
		return s
	}
	n := 1<<24 - (h*10000 + m*100 + sec)
	return fmt.Sprintf("-%02d:%02d:%02d", n/10000, n/100%100, n%100)
}

func clock(s string) (h, m, sec int, ok bool) {
	p := strings.Split(s, ":")
	if len(p) != 3 {
		return 0, 0, 0, false
	}
	h, e1 := strconv.Atoi(p[0])
	m, e2 := strconv.Atoi(p[1])
	sec, e3 := strconv.Atoi(p[2])
	return h, m, sec, e1 == nil && e2 == nil && e3 == nil
}
