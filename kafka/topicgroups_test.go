package kafka

import (
	"strings"
	"testing"
)

// As in Kafka Connect: the first group that matches counts, what it leaves open is
// the default's, and its settings are its own.
func TestTopicGroupsGiveTheirValues(t *testing.T) {
	c := TopicCreation{
		Create: true, Partitions: 3, Replication: 2, Settings: map[string]string{"cleanup.policy": "delete"},
		Groups: []TopicGroup{
			{Match: func(s string) (bool, error) { return strings.HasPrefix(s, "state."), nil }, Partitions: 6,
				Settings: map[string]string{"cleanup.policy": "compact"}},
			{Match: func(s string) (bool, error) { return strings.HasPrefix(s, "s"), nil }, Replication: 1},
		},
	}
	for topic, want := range map[string]struct {
		partitions  int32
		replication int16
		policy      string
	}{"other": {3, 2, "delete"}, "state.order": {6, 2, "compact"}, "small": {3, 1, ""}} {
		p, r, s, err := c.forTopic(topic)
		if err != nil || p != want.partitions || r != want.replication || s["cleanup.policy"] != want.policy {
			t.Errorf("%s: %d partitions, %d replicas, %v; want %+v", topic, p, r, s, want)
		}
	}
}
