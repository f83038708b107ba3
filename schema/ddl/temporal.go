package ddl

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// The forms of dates and times in which nearly all defaults are written. The server knows
// many more.
var (
	dateForm = regexp.MustCompile(
		`^(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?)?$`,
	)
	timeForm = regexp.MustCompile(`^(-?\d{1,3}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?$`)
)

// temporalDefault is a date or time with the column's number of decimals.
func temporalDefault(d *definition, v value) (string, error) {
	if v.kind == numberValue && strings.Trim(v.text, "0") == "" {
		v = value{kind: textValue, text: "0000-00-00"}
		if d.Type == schema.Time {
			v.text = "00:00:00"
		}
	}
	if v.kind != textValue {
		return "", errDefault(d.Type)
	}
	if d.Type == schema.Time {
		m := timeForm.FindStringSubmatch(v.text)
		if m == nil {
			return "", errDefault(d.Type)
		}
		hours := strings.TrimPrefix(m[1], "-")
		sign := m[1][:len(m[1])-len(hours)]
		return withFraction(d, sign+two(hours)+":"+m[2]+":"+two(m[3]), m[4])
	}
	m := dateForm.FindStringSubmatch(v.text)
	if m == nil {
		return "", errDefault(d.Type)
	}
	date := m[1] + "-" + two(m[2]) + "-" + two(m[3])
	if d.Type == schema.Date {
		if m[4] != "" {
			return "", errDefault(d.Type)
		}
		return date, nil
	}
	return withFraction(d, date+" "+two(m[4])+":"+two(m[5])+":"+two(m[6]), m[7])
}

// two writes a number with two digits at least.
func two(s string) string {
	n, _ := strconv.Atoi(s)
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// withFraction adds the decimals. More than the column has would be rounded.
func withFraction(d *definition, s, fraction string) (string, error) {
	if len(fraction) > d.FSP {
		if strings.Trim(fraction[d.FSP:], "0") != "" {
			return "", errDefault(d.Type)
		}
		fraction = fraction[:d.FSP]
	}
	if d.FSP == 0 {
		return s, nil
	}
	return s + "." + fraction + strings.Repeat("0", d.FSP-len(fraction)), nil
}
