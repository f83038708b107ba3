package offset

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Keys of Connect's topic of states (KafkaStatusBackingStore).
const (
	connectorStatus = "status-connector-"
	taskStatus      = "status-task-"
)

// StatusOf reports whether a record of status.storage.topic is of a connector, or of a task
// of it.
func StatusOf(key []byte, connector string) (task, ok bool) {
	if string(key) == connectorStatus+connector {
		return false, true
	}
	number, ok := strings.CutPrefix(string(key), taskStatus+connector+"-")
	return true, ok && strings.Trim(number, "0123456789") == ""
}

// Runs says why a connector may publish more than its offset says, by a record for which
// StatusOf is true; empty when it may not. A nil value is a connector that is gone.
func Runs(key, value []byte, connector string) string {
	task, ok := StatusOf(key, connector)
	if !ok || value == nil {
		return ""
	}
	var status struct {
		State string `json:"state"`
	}
	if json.Unmarshal(value, &status) != nil {
		return "its state can't be read"
	}
	switch {
	case !task && status.State != "STOPPED":
		return "it is " + status.State
	case task && status.State != "UNASSIGNED" && status.State != "DESTROYED" && status.State != "FAILED":
		return fmt.Sprintf("its task is %s", status.State)
	}
	return ""
}
