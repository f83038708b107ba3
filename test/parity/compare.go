package parity

import (
	"fmt"
	"strings"
)

// Compare says how our outcome of a case differs from Debezium's, empty when it does
// not: the records are the same, and a task that Debezium ended is one that ours
// ended too, after the same records.
//
// Whether the configuration is refused at the start or only when the first row is
// met counts as the same: nothing is published either way.
func Compare(want Result, got *Outcome) string {
	stopped := want.Failed != "" || want.Refused != ""
	switch {
	case stopped && !got.Stopped():
		return "streams on, but Debezium stops:\n" + lastCause(want) + "\n" + DiffRecords(want.Records, got.Records)
	case !stopped && got.Stopped():
		return fmt.Sprintf("stops, but Debezium does not: %s%s %s\n%s", got.Refused, got.Code, got.Message,
			DiffRecords(want.Records, got.Records))
	}
	if diff := DiffRecords(want.Records, got.Records); diff != "" {
		return diff
	}
	if stopped {
		return compareReasons(want, got)
	}
	return ""
}

// lastCause is the innermost exception of a failure.
func lastCause(r Result) string {
	lines := strings.Split(strings.TrimSpace(r.Failed+"\n"+r.Refused), "\n")
	return lines[len(lines)-1]
}
