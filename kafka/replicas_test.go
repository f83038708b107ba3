package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

func createTopic(t *testing.T, c *kafkatest.Cluster, topic string, replicas int16, settings ...string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 1, replicas
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		rt.Configs = append(rt.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("creating %s: %v, %+v", topic, err, resp)
	}
}

// One replica, and two of which one is enough, are told of topics and of the one of the
// position; not on a single broker, which has no choice.
func TestProbeTellsOfFewReplicas(t *testing.T) {
	const one, lax = "has one replica", "min.insync.replicas is 1"
	for _, c := range []struct {
		name     string
		brokers  int
		replicas int16
		settings string
		want     string
	}{
		{"one replica", 3, 1, "min.insync.replicas=1", one},
		{"one replica is enough", 3, 3, "min.insync.replicas=1", lax},
		{"two are needed", 3, 3, "min.insync.replicas=2", ""},
		{"a single broker", 1, 1, "min.insync.replicas=1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := kafkatest.Start(t, kfake.NumBrokers(c.brokers))
			createTopic(t, cl, "orders", c.replicas, c.settings)
			createTopic(t, cl, positionTopic, c.replicas, c.settings, "cleanup.policy=compact")
			told := map[string]string{}
			for _, f := range kafka.Probe(t.Context(), config(cl.Brokers()), true, []string{"orders"}) {
				if strings.Contains(f.Text, one) || strings.Contains(f.Text, lax) {
					if f.Level != kafka.Warning {
						t.Errorf("%s is no warning", f)
					}
					told[f.Subject] += f.Text
				}
			}
			for _, subject := range []string{"topic orders", "position topic " + positionTopic} {
				if got := told[subject]; c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Errorf("of %s it says %q, want %q", subject, got, c.want)
				}
			}
		})
	}
}

// The position topic has three replicas, or as many as there are brokers for, unless the
// configuration says another number.
func TestPositionTopicIsReplicated(t *testing.T) {
	for _, c := range []struct {
		brokers    int
		configured int16
		want       int16
	}{{1, -1, 1}, {2, -1, 2}, {3, -1, 3}, {5, -1, 3}, {3, 1, 1}, {3, 2, 2}} {
		cl := kafkatest.Start(t, kfake.NumBrokers(c.brokers))
		cfg := config(cl.Brokers())
		cfg.PositionReplication = c.configured
		asked := int16(0)
		cl.ControlKey(int16(kmsg.CreateTopics), func(r kmsg.Request) (kmsg.Response, error, bool) {
			asked = r.(*kmsg.CreateTopicsRequest).Topics[0].ReplicationFactor
			return nil, nil, false
		})
		reopen(t, publisher(t, cfg))
		if asked != c.want {
			t.Errorf("%d brokers, configured %d: %d replicas are asked for, want %d", c.brokers, c.configured, asked, c.want)
		}
	}
}
