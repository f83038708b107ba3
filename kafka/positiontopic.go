package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

// ensurePositionTopic creates the topic if it isn't there, and refuses one that
// would forget the position or that has several partitions.
func (s *ExactlyOnce) ensurePositionTopic(ctx context.Context) error {
	topic, client := s.pub.cfg.PositionTopic(), s.p.client
	err := client.RefreshMetadata(topic)
	if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
		settings := map[string]string{"cleanup.policy": "compact", "segment.bytes": "16777216"}
		wanted := map[string]*sarama.TopicDetail{topic: topicDetail(1, s.positionReplication(), settings)}
		if err := createTopics(client, wanted, s.pub.log)[topic]; err != nil {
			return onTopic(classify("creating the position topic", err), topic)
		}
		err = s.p.topics.await(ctx, topic)
	}
	if errors.Is(err, sarama.ErrLeaderNotAvailable) {
		return onTopic(newError(Unavailable, "the position topic has no leader: start its broker; if it is gone for good, "+
			"make the topic anew "+
			"(kafka-topics.sh --delete) and choose where to go on with 'offset set'", err), topic)
	}
	if err != nil {
		return onTopic(classify("looking up the position topic", err), topic)
	}
	ids, err := client.Partitions(topic)
	if err != nil {
		return onTopic(classify("looking up the position topic", err), topic)
	}
	if len(ids) != 1 {
		return onTopic(newError(TopicInvalid, fmt.Sprintf("the position topic must have one partition, it has %d: use "+
			"another prefix or recreate it", len(ids)), nil), topic)
	}
	settings, err := topicSettings(client, topic, cleanupPolicyKey, maxMessageBytesKey)
	if err != nil {
		if s.pub.uncertain.CompareAndSwap(false, true) {
			s.pub.log.Warn("the settings of the position topic can't be read (right DESCRIBE_CONFIGS): nobody checks that its "+
				"cleanup.policy is compact, without which it forgets the position",
				"topic", topic, "error", err)
		}
		return nil
	}
	if n, err := strconv.Atoi(settings[maxMessageBytesKey]); err == nil {
		s.positionLimit = n
	}
	if policy, ok := settings[cleanupPolicyKey]; ok && policy != "compact" {
		return onTopic(newError(TopicInvalid, fmt.Sprintf("the position topic must have cleanup.policy=compact, it has %q "+
			"and would forget the position", policy), nil), topic)
	}
	return nil
}

func onTopic(e *Error, topic string) *Error {
	if e.Topic == "" {
		e.Topic = topic
	}
	return e
}

// positionReplicas is how many replicas the position topic gets by default.
const positionReplicas = 3

// positionReplication is the configured number of replicas, or as many as there are
// brokers for: the brokers' default is one unless somebody has changed it.
func (s *ExactlyOnce) positionReplication() int16 {
	if n := s.pub.cfg.PositionReplication; n > 0 {
		return n
	}
	return int16(max(1, min(positionReplicas, len(s.p.client.Brokers()))))
}

const maxTransactionTimeoutKey = "transaction.max.timeout.ms"

// timeoutRefused says that the brokers let no transaction take as long as configured,
// and how long they do where they tell.
func (s *ExactlyOnce) timeoutRefused() *Error {
	most := "their " + maxTransactionTimeoutKey
	longest, err := s.longestTransaction()
	if err == nil {
		most += " of " + longest.String()
	}
	if s.timeout > s.pub.cfg.TransactionTimeout {
		s.pub.patience.refused(s.timeout, longest, s.pub.cfg.TransactionTimeout)
		return newError(Timeout, fmt.Sprintf("a slow batch needs a transaction of %s, which is above %s: the next attempt "+
			"has what they allow",
			s.timeout, most), nil)
	}
	return newError(SettingRefused, fmt.Sprintf("the brokers refuse transaction_timeout %s, which is above %s: lower "+
		"the one or raise the other",
		s.pub.cfg.TransactionTimeout, most), nil)
}

// longestTransaction asks for the brokers' transaction.max.timeout.ms.
func (s *ExactlyOnce) longestTransaction() (time.Duration, error) {
	coordinator, err := s.p.client.TransactionCoordinator(s.pub.cfg.TransactionalID())
	if err != nil {
		return 0, err
	}
	text, err := brokerSetting(coordinator, coordinator.ID(), maxTransactionTimeoutKey)
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.Duration(ms) * time.Millisecond, err
}

// brokerSetting asks a broker for one of its settings.
func brokerSetting(b *sarama.Broker, id int32, name string) (string, error) {
	answer, err := b.DescribeConfigs(&sarama.DescribeConfigsRequest{Version: 2, Resources: []*sarama.ConfigResource{{
		Type: sarama.BrokerResource, Name: strconv.Itoa(int(id)), ConfigNames: []string{name}}}})
	if err != nil {
		return "", err
	}
	if len(answer.Resources) != 1 || len(answer.Resources[0].Configs) != 1 {
		return "", sarama.ErrIncompleteResponse
	}
	return answer.Resources[0].Configs[0].Value, nil
}

// supportsExactlyOnce refuses brokers without transactions or without their
// verification. sees reports whether they tell what is open in a partition.
func supportsExactlyOnce(b *sarama.Broker) (sees bool, err error) {
	resp, err := b.ApiVersions(&sarama.ApiVersionsRequest{})
	if err != nil {
		return false, fmt.Errorf("asking for the supported requests: %w", err)
	}
	newest := map[int16]int16{}
	for _, k := range resp.ApiKeys {
		newest[k.ApiKey] = k.MaxVersion
	}
	if newest[addPartitionsKey] < addPartitionsVerified {
		return false, newError(Unsupported, "exactly-once needs Kafka 3.6.1 or newer, which verifies transactions: upgrade "+
			"the brokers or use delivery at_least_once", nil)
	}
	_, producers := newest[describeProducersKey]
	_, transactions := newest[describeTransactionsKey]
	return producers && transactions, nil
}
