package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka"
)

func TestDefaultConfigNeedsOnlyBrokersAndName(t *testing.T) {
	cfg := kafka.DefaultConfig()
	cfg.Brokers, cfg.Connector = []string{"kafka:9092"}, "orders"
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	if cfg.TransactionalID() != "binlog-outbox.orders" || cfg.PositionTopic() != "binlog-outbox.orders.position" {
		t.Errorf("names are %q and %q", cfg.TransactionalID(), cfg.PositionTopic())
	}
}

func TestValidateNamesEachProblem(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*kafka.Config)
		want   []string
	}{
		{"nothing set", func(c *kafka.Config) { c.Brokers, c.Connector = nil, "" }, []string{"brokers:", "connector:"}},
		{"broker without port", func(c *kafka.Config) { c.Brokers = []string{"kafka"} },
			[]string{`"kafka" is not host:port`}},
		{"name that is no topic", func(c *kafka.Config) { c.Connector = "a b" }, []string{"not a valid topic name"}},
		{"version", func(c *kafka.Config) { c.Version = "new" }, []string{`version: "new"`}},
		{"compression", func(c *kafka.Config) { c.Compression = "rar" }, []string{`compression: "rar"`}},
		{"size", func(c *kafka.Config) { c.MaxMessageBytes = 10 }, []string{"max_message_bytes: 10"}},
		{"timeouts in the wrong order", func(c *kafka.Config) { c.AckTimeout, c.DeliveryTimeout = time.Hour, time.Second },
			[]string{"request_timeout", "delivery_timeout"}},
		{"both create topics", func(c *kafka.Config) { c.Topics.Create, c.Topics.AutoCreate = true, true },
			[]string{"not both"}},
		{"no partitions", func(c *kafka.Config) { c.Topics = kafka.TopicCreation{Create: true, Replication: 1} },
			[]string{"topics.partitions"}},
		{"mechanism", func(c *kafka.Config) { c.SASL = &kafka.SASL{Mechanism: "GSSAPI", Credentials: user("a", "b")} },
			[]string{"sasl.mechanism"}},
		{"no password", func(c *kafka.Config) { c.SASL = &kafka.SASL{Mechanism: "PLAIN"} }, []string{"user and password"}},
		{"no token", func(c *kafka.Config) { c.SASL = &kafka.SASL{Mechanism: "OAUTHBEARER"} },
			[]string{"exactly one of token"}},
		{"endpoint without client", func(c *kafka.Config) {
			c.SASL = &kafka.SASL{Mechanism: "OAUTHBEARER", OAuth: kafka.OAuth{Endpoint: "ftp://x"}}
		}, []string{"not an http(s) address", "client id and secret"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := config([]string{"kafka:9092"})
			c.change(&cfg)
			err := cfg.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func user(name, password string) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) { return name, password, nil }
}
