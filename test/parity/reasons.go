package parity

import (
	"fmt"
	"strings"
)

// reasons pairs what Debezium's exceptions say with the codes of our errors; "" is a
// configuration that is refused at the start.
func reasons() []reason {
	return []reason{
		{"is not a valid field name", []string{"missing_column", "envelope_schema", ""}},
		{"Unable to find", []string{"missing_column", ""}},
	}
}

type reason struct {
	says  string
	codes []string
}

// compareReasons checks that both stopped for one reason.
func compareReasons(want Result, got *Outcome) string {
	for _, r := range reasons() {
		if !strings.Contains(want.Failed+want.Refused, r.says) {
			continue
		}
		for _, code := range r.codes {
			if code == got.Code && (code != "" || got.Refused != "") {
				return ""
			}
		}
		return fmt.Sprintf("stops for another reason: %q %s, Debezium says:\n%s", got.Code, got.Message+got.Refused, lastCause(want))
	}
	return fmt.Sprintf("stops (%q %s), and no reason is known that fits Debezium's:\n%s", got.Code, got.Message+got.Refused, lastCause(want))
}
