package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name        string
		opts        []kfake.Opt
		prepare     func(c *kafkatest.Cluster)
		change      func(*kafka.Config)
		atLeastOnce bool
		topics      []string
		want        []string // each begins level and subject, and has a text
	}{
		{name: "all is well", opts: []kfake.Opt{kfake.SeedTopics(3, "orders")}, topics: []string{"orders"},
			want: []string{"ok: broker", "ok: position topic|will be created",
				"ok: topic orders|3 partitions, takes records of up to"}},
		{name: "at least once needs no position topic", opts: []kfake.Opt{kfake.SeedTopics(3, "orders"),
			kfake.MaxVersions(kversion.V2_8_0())}, atLeastOnce: true, topics: []string{"orders"},
			want: []string{"ok: broker", "ok: topic orders"}},
		{name: "old brokers", opts: []kfake.Opt{kfake.MaxVersions(kversion.V3_5_0())},
			want: []string{"error: broker|3.6.1", "ok: position topic"}},
		{name: "missing topic", topics: []string{"gone"}, want: []string{"ok: broker", "ok: position topic",
			"error: topic gone|does not exist|create it"}},
		{name: "missing topic that will be created", topics: []string{"gone"},
			change: func(c *kafka.Config) { c.Topics.Create = true }, want: []string{"ok: broker", "ok: position topic",
				"ok: topic gone|will be created"}},
		{name: "topics are sorted, names checked", topics: []string{"b c", "a", "a"},
			want: []string{"ok: broker", "ok: position topic", "error: topic a|does not exist", "error: topic b c|not a valid"}},
		{name: "small topic", prepare: func(c *kafkatest.Cluster) {
			c.Topic("small", 1,
				map[string]string{"max.message.bytes": "5000"})
		}, topics: []string{"small"},
			want: []string{"ok: broker", "ok: position topic", "warning: topic small|5000 is below the client's limit 1048576"}},
		{name: "unfit position topic", prepare: func(c *kafkatest.Cluster) { c.Topic(positionTopic, 3, nil) },
			want: []string{"ok: broker", "error: position topic|one partition"}},
		{name: "one dead broker", change: func(c *kafka.Config) { c.Brokers = append([]string{"127.0.0.1:1"}, c.Brokers...) },
			want: []string{"warning: broker 127.0.0.1:1|refused", "ok: broker", "ok: position topic"}},
		{name: "no broker", change: func(c *kafka.Config) { c.Brokers = []string{"127.0.0.1:1"} },
			want: []string{"warning: broker 127.0.0.1:1", "error: cluster|no broker"}},
		{name: "bad configuration", change: func(c *kafka.Config) { c.Brokers = nil },
			want: []string{"error: configuration|brokers:"}},
		{name: "wrong password", opts: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "outbox", "right")},
			change: func(c *kafka.Config) { c.SASL = &kafka.SASL{Mechanism: "PLAIN", Credentials: user("outbox", "wrong")} },
			want:   []string{"warning: broker|login", "error: cluster"}},
		{name: "no rights", opts: []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(1, "orders"),
			kfake.User("PLAIN", "outbox", "right",
				kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "orders", Pattern: kmsg.ACLResourcePatternTypeLiteral,
					Operation: kmsg.ACLOperationDescribe, Allow: true},
				kfake.ACL{Resource: kmsg.ACLResourceTypeCluster, Name: "kafka-cluster", Pattern: kmsg.ACLResourcePatternTypeLiteral,
					Operation: kmsg.ACLOperationDescribe, Allow: true})},
			change: func(c *kafka.Config) {
				c.SASL = &kafka.SASL{Mechanism: "PLAIN",
					Credentials: user("outbox", "right")}
			},
			atLeastOnce: true, topics: []string{"orders", "secret"},
			want: []string{"ok: broker", "warning: broker|IDEMPOTENT_WRITE", "error: topic orders|no right WRITE",
				"ok: topic orders", "error: topic secret|not authorized|a right is missing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := kafkatest.Start(t, c.opts...)
			if c.prepare != nil {
				c.prepare(cl)
			}
			cfg := config(cl.Brokers())
			if c.change != nil {
				c.change(&cfg)
			}
			got := kafka.Probe(t.Context(), cfg, !c.atLeastOnce, c.topics)
			var lines []string
			for _, f := range got {
				lines = append(lines, fmt.Sprintf("%s: %s: %s (%s)", f.Level, f.Subject, f.Text, f.Remedy))
				if (f.Level == kafka.OK) != (f.Remedy == "") {
					t.Errorf("remedy of %+v", f)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("%d findings, want %d:\n%s", len(got), len(c.want), strings.Join(lines, "\n"))
			}
			for i, w := range c.want {
				parts := strings.Split(w, "|")
				if !strings.HasPrefix(lines[i], parts[0]) {
					t.Errorf("finding %d is %q, want %q", i, lines[i], w)
				}
				for _, p := range parts[1:] {
					if !strings.Contains(strings.ToLower(lines[i]), strings.ToLower(p)) {
						t.Errorf("finding %d is %q, without %q", i, lines[i], p)
					}
				}
			}
		})
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	c := kafkatest.Start(t)
	c.Network.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	kafka.Probe(ctx, config(c.Brokers()), true, []string{"a", "b", "c"})
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("it took %s", d)
	}
}
