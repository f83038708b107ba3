package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

// produce sends one record for each value and waits for all acknowledgements.
func produce(t *testing.T, config *sarama.Config, addrs []string, topic string, values ...string) error {
	t.Helper()
	if config == nil {
		config = clientConfig()
	}
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 300 // of 100 ms: longer than electing another leader takes
	producer, err := sarama.NewSyncProducer(addrs, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, value := range values {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
		if err != nil {
			return err
		}
	}
	return nil
}

// consume reads n records of partition 0 from its start.
func consume(t *testing.T, addrs []string, topic string, n int) string {
	t.Helper()
	consumer, err := sarama.NewConsumer(addrs, clientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	records, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	var values []string
	limit := time.After(30 * time.Second)
	for len(values) < n {
		select {
		case m := <-records.Messages():
			values = append(values, string(m.Value))
		case <-limit:
			t.Fatalf("%d of %d records came: %v", len(values), n, values)
		}
	}
	return strings.Join(values, " ")
}

func TestKafka(t *testing.T) {
	k := KafkaForTest(t, KafkaOptions{
		Listeners: []Listener{{Name: "PROXIED", Proxied: true}, {Name: "SECURE", Protocol: "SASL_PLAINTEXT"}},
		Properties: []string{
			"message.max.bytes=4321",
			"auto.create.topics.enable=false",
			"listener.name.secure.sasl.enabled.mechanisms=PLAIN",
			`listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonderland";`,
		},
	})
	if err := k.CreateTopic("t", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	addrs := []string{k.Addr()}
	if err := produce(t, nil, addrs, "t"); err != nil {
		t.Fatal(err)
	}
	t.Run("settings", func(t *testing.T) { testKafkaSettings(t, k) })
	t.Run("features", func(t *testing.T) { testKafkaFeatures(t, k) })
	t.Run("proxied listener", func(t *testing.T) { testProxiedListener(t, k) })
	t.Run("secure listener", func(t *testing.T) { testSecureListener(t, k) })
	t.Run("kill", func(t *testing.T) {
		pid := k.PID()
		if err := k.CreateTopic("kept", 1, nil); err != nil {
			t.Fatal(err)
		}
		if err := produce(t, nil, addrs, "kept", "a", "b", "c"); err != nil {
			t.Fatal(err)
		}
		if err := k.Kill(); err != nil {
			t.Fatal(err)
		}
		if alive(pid) {
			t.Fatalf("process %d lives", pid)
		}
		if err := k.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := consume(t, addrs, "kept", 3); got != "a b c" {
			t.Errorf("%q survived", got)
		}
	})
	t.Run("pause", func(t *testing.T) {
		if err := k.Pause(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := k.ping(ctx); err == nil {
			t.Error("a paused broker answers")
		}
		if err := k.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := k.ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("close", func(t *testing.T) {
		pid, dir, proxy := k.PID(), k.Dir(), k.ListenerAddr("PROXIED")
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		if alive(pid) || exists(dir) {
			t.Errorf("process %d or %s is left", pid, dir)
		}
		if err := dialable(proxy); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the proxy is left: %v", err)
		}
	})
}

func testKafkaSettings(t *testing.T, k *Kafka) {
	admin, err := k.Admin()
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for _, test := range []struct {
		kind             sarama.ConfigResourceType
		name, key, value string
	}{
		{sarama.BrokerResource, fmt.Sprint(k.NodeID()), "message.max.bytes", "4321"},
		{sarama.TopicResource, "t", "cleanup.policy", "compact"},
	} {
		asked := []*sarama.ConfigResource{{Type: test.kind, Name: test.name, ConfigNames: []string{test.key}}}
		answers, err := admin.DescribeConfigs(asked, sarama.DescribeConfigsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(answers) != 1 || len(answers[0].Configs) != 1 || answers[0].Configs[0].Value != test.value {
			t.Errorf("%s is %+v, not %s", test.key, answers, test.value)
		}
	}
}

// testKafkaFeatures guards the copied data folder: without the features that
// formatting writes, transactions would be of the old protocol.
func testKafkaFeatures(t *testing.T, k *Kafka) {
	broker := sarama.NewBroker(k.Addr())
	if err := broker.Open(clientConfig()); err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	answer, err := broker.ApiVersions(&sarama.ApiVersionsRequest{Version: 3, ClientSoftwareName: "t",
		ClientSoftwareVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	features := map[string]int16{}
	for _, feature := range answer.FinalizedFeatures {
		features[feature.Name] = feature.MaxVersionLevel
	}
	if features["transaction.version"] < 2 || features["metadata.version"] == 0 {
		t.Errorf("features are %v", features)
	}
}

func testProxiedListener(t *testing.T, k *Kafka) {
	at := k.ListenerAddr("PROXIED")
	client, err := sarama.NewClient([]string{at}, clientConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, broker := range client.Brokers() {
		if broker.Addr() != at {
			t.Errorf("a client of the proxy is sent to %s", broker.Addr())
		}
	}
	if k.Proxy("PROXIED").Conns() == 0 {
		t.Error("the proxy has no connection")
	}
	if k.Proxy("SECURE") != nil || k.ListenerAddr("NONE") != "" {
		t.Error("there is more than was asked for")
	}
}

func testSecureListener(t *testing.T, k *Kafka) {
	for _, test := range []struct {
		password string
		ok       bool
	}{{"wonderland", true}, {"wrong", false}} {
		config := clientConfig()
		config.Metadata.Retry.Max = 0
		config.Net.SASL.Enable = true
		config.Net.SASL.User, config.Net.SASL.Password = "alice", test.password
		client, err := sarama.NewClient([]string{k.ListenerAddr("SECURE")}, config)
		if (err == nil) != test.ok {
			t.Errorf("password %q: %v", test.password, err)
		}
		if err == nil {
			client.Close()
		}
	}
}

func TestKafkaClusterSurvivesABroker(t *testing.T) {
	c := KafkaClusterForTest(t, 3, KafkaOptions{Heap: "256m"})
	if err := c.Brokers[0].CreateTopic("t", 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := produce(t, nil, c.Addrs(), "t", "a"); err != nil {
		t.Fatal(err)
	}
	if err := c.Brokers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := produce(t, nil, c.Addrs(), "t", "b"); err != nil {
		t.Fatal(err)
	}
	if err := c.Brokers[0].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := consume(t, []string{c.Brokers[0].Addr()}, "t", 2); got != "a b" {
		t.Errorf("read %q", got)
	}
}

func TestDetachedServer(t *testing.T) {
	dir := t.TempDir()
	if _, err := StartMariaDB(t.Context(), Options{Detached: true}); err == nil {
		t.Fatal("a detached server without a folder")
	}
	s := MariaDBForTest(t, Options{Dir: dir, Detached: true})
	pid := s.PID()
	// What the starter's end would do.
	s.folder.lock.unlock()
	if _, err := StartMariaDB(t.Context(), Options{Dir: dir}); err == nil || !contains(err, "already serves") {
		t.Errorf("a folder in use is taken: %v", err)
	}
	was, err := StopDetached(t.Context(), dir)
	if !was || err != nil {
		t.Errorf("stopped %v, %v", was, err)
	}
	<-s.Done()
	if alive(pid) {
		t.Errorf("process %d lives", pid)
	}
}
