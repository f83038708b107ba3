package kafka

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/IBM/sarama"
)

const (
	maxMessageBytesKey = "max.message.bytes"
	cleanupPolicyKey   = "cleanup.policy"
	// topicsAtOnce is how many topics are looked up or created with one request. More
	// would get close to what Kafka's controller does at once: 10,000 records, of which
	// each partition is one.
	topicsAtOnce = 100
	// createWait is how long topics may take to be known to all after they were
	// created.
	createWait = 5 * time.Second
	createPoll = 20 * time.Millisecond
	// controllerTries is how often topics are created anew because the controller moves.
	controllerTries = 5
	controllerPause = 100 * time.Millisecond
)

// meet looks at topics for the first time in this session, and has those created that are
// missing, if that is wanted. It returns why records can't go to some of them, and stops
// behind the first requests for which there is such a reason.
func (t *topics) meet(ctx context.Context, fresh []string) map[string]*Error {
	refused := map[string]*Error{}
	for some := range slices.Chunk(fresh, topicsAtOnce) {
		errs := t.find(ctx, some)
		t.learnLimits(slices.DeleteFunc(slices.Clone(some), func(name string) bool { return errs[name] != nil }))
		for topic, err := range errs {
			e := onTopic(classify("looking up the topic", err), topic)
			e.Poison = errors.Is(err, sarama.ErrInvalidTopic)
			refused[topic] = e
		}
		if len(refused) > 0 {
			break
		}
	}
	return refused
}

// find looks topics up and has the missing ones created if that is wanted. It returns
// what is wrong with each that can't be used.
func (t *topics) find(ctx context.Context, names []string) map[string]error {
	err := t.client.RefreshMetadata(names...)
	if err == nil {
		return nil
	}
	errs := t.each(names, err)
	var missing []string
	for _, name := range names {
		if isMissing(errs[name]) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return errs
	}
	switch {
	case t.cfg.Topics.Create:
		failed := t.create(missing)
		maps.Copy(errs, failed)
		missing = slices.DeleteFunc(missing, func(name string) bool { return failed[name] != nil })
	case t.cfg.Topics.AutoCreate:
		if _, err := t.metadata(missing, true); err != nil {
			for _, name := range missing {
				errs[name] = err
			}
			return errs
		}
	default:
		return errs
	}
	for _, name := range missing {
		delete(errs, name)
	}
	if err := t.await(ctx, missing...); err != nil {
		maps.Copy(errs, t.each(missing, err))
	}
	return errs
}

func isMissing(err error) bool {
	return errors.Is(err, sarama.ErrUnknownTopicOrPartition) || errors.Is(err, sarama.ErrLeaderNotAvailable)
}

// each says what is wrong with which topic, after the client could not look all of
// them up for err.
func (t *topics) each(names []string, err error) map[string]error {
	errs := map[string]error{}
	if len(names) == 1 {
		errs[names[0]] = err
		return errs
	}
	answer, unanswered := t.metadata(names, false)
	if unanswered != nil {
		for _, name := range names {
			errs[name] = err
		}
		return errs
	}
	for _, topic := range answer.Topics {
		if topic.Err != sarama.ErrNoError {
			errs[topic.Name] = topic.Err
			continue
		}
		for _, p := range topic.Partitions {
			if p.Err == sarama.ErrLeaderNotAvailable {
				errs[topic.Name] = p.Err
			}
		}
	}
	return errs
}

// metadata asks for topics. With create it lets the broker create them, which the
// client's own look-ups never do, or the position topic would come to be with the
// brokers' defaults.
func (t *topics) metadata(names []string, create bool) (*sarama.MetadataResponse, error) {
	b := t.client.LeastLoadedBroker()
	if b == nil {
		return nil, sarama.ErrOutOfBrokers
	}
	req := sarama.NewMetadataRequest(t.client.Config().Version, names)
	req.AllowAutoTopicCreation = create
	return b.GetMetadata(req)
}

// await waits until topics that are being created have their leaders.
func (t *topics) await(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	deadline := time.Now().Add(createWait)
	for {
		err := t.client.RefreshMetadata(names...)
		if !isMissing(err) || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, createPoll); err != nil {
			return err
		}
	}
}

// create makes topics as configured. Another node or a person may be faster. It
// returns what is wrong with each that can't be made.
func (t *topics) create(names []string) map[string]error {
	errs := map[string]error{}
	details := map[string]*sarama.TopicDetail{}
	for _, name := range names {
		partitions, replication, settings, err := t.cfg.Topics.forTopic(name)
		if err != nil {
			errs[name] = newError(SettingRefused, "creating topic "+name, err)
			continue
		}
		details[name] = topicDetail(partitions, replication, settings)
	}
	maps.Copy(errs, createTopics(t.client, details, t.log))
	return errs
}

func topicDetail(partitions int32, replication int16, settings map[string]string) *sarama.TopicDetail {
	d := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: replication,
		ConfigEntries: map[string]*string{}}
	for k, v := range settings {
		d.ConfigEntries[k] = &v
	}
	return d
}

// createTopics makes topics with one request, or with several when the controller finds
// them too many. It returns what is wrong with each that does not exist then.
func createTopics(client sarama.Client, details map[string]*sarama.TopicDetail, log *slog.Logger) map[string]error {
	errs := map[string]error{}
	if len(details) == 0 {
		return errs
	}
	answer, err := askController(client, details)
	refused := map[string]*sarama.TopicDetail{}
	for name, detail := range details {
		switch told := err; {
		case told != nil:
			errs[name] = classify("creating the topic", told)
		case answer[name] == nil:
			errs[name] = classify("creating the topic", sarama.ErrIncompleteResponse)
		case answer[name].Err == sarama.ErrNoError:
			log.Info("topic created", "topic", name)
		case answer[name].Err == sarama.ErrTopicAlreadyExists:
		case answer[name].Err == sarama.ErrPolicyViolation && len(details) > 1:
			refused[name] = detail
		default:
			errs[name] = classify("creating the topic", answer[name])
		}
	}
	names := slices.Sorted(maps.Keys(refused))
	for half := range slices.Chunk(names, max(1, (len(names)+1)/2)) {
		some := map[string]*sarama.TopicDetail{}
		for _, name := range half {
			some[name] = refused[name]
		}
		maps.Copy(errs, createTopics(client, some, log))
	}
	return errs
}

// askController sends a request to create topics, and looks for the controller again
// when it has moved.
func askController(
	client sarama.Client, details map[string]*sarama.TopicDetail,
) (map[string]*sarama.TopicError, error) {
	for tries := 1; ; tries++ {
		controller, err := client.Controller()
		if err != nil {
			return nil, err
		}
		answer, err := controller.CreateTopics(sarama.NewCreateTopicsRequest(client.Config().Version, details,
			client.Config().Admin.Timeout, false))
		moved := errors.Is(err, io.EOF)
		if err == nil {
			for _, e := range answer.TopicErrors {
				moved = moved || e.Err == sarama.ErrNotController
			}
		}
		switch {
		case moved && tries < controllerTries:
			time.Sleep(controllerPause)
			_, _ = client.RefreshController() // the next request says why not
		case err != nil:
			return nil, err
		default:
			return answer.TopicErrors, nil
		}
	}
}

// learnLimits asks for the topics' max.message.bytes. A missing right to ask is no
// harm: a refused batch will teach it.
func (t *topics) learnLimits(names []string) {
	var ask []string
	for _, name := range names {
		if t.limits.isSingly(name) {
			t.limit[name] = 1
			continue
		}
		if n, ok := t.limits.get(name); ok {
			t.limit[name] = n
		}
		ask = append(ask, name)
	}
	answers, err := describeTopics(t.client, ask, maxMessageBytesKey)
	if err != nil {
		t.log.Debug("the topics' batch limits are not known", "topics", len(ask), "error", err)
		return
	}
	for _, a := range answers {
		n, err := limitIn(a)
		if err != nil {
			t.log.Debug("the topic's batch limit is not known", "topic", a.Name, "error", err)
		} else if old, ok := t.limit[a.Name]; n < t.cfg.MaxMessageBytes && (!ok || n < old) {
			t.limit[a.Name] = n
		}
	}
}

// topicLimit asks for a topic's max.message.bytes.
func topicLimit(client sarama.Client, topic string) (int, error) {
	answers, err := describeTopics(client, []string{topic}, maxMessageBytesKey)
	if err != nil {
		return 0, err
	}
	return limitIn(answers[0])
}

func limitIn(answer *sarama.ConfigResourceResult) (int, error) {
	settings, err := settingsIn(answer)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(settings[maxMessageBytesKey])
}

// topicSettings asks for some of a topic's settings. Those that the broker does
// not tell are missing.
func topicSettings(client sarama.Client, topic string, keys ...string) (map[string]string, error) {
	answers, err := describeTopics(client, []string{topic}, keys...)
	if err != nil {
		return nil, err
	}
	return settingsIn(answers[0])
}

func settingsIn(answer *sarama.ConfigResourceResult) (map[string]string, error) {
	if answer.ErrorCode != 0 {
		return nil, &sarama.DescribeConfigError{Err: answer.ErrorCode, ErrMsg: answer.ErrorMsg}
	}
	settings := make(map[string]string, len(answer.Configs))
	for _, e := range answer.Configs {
		settings[e.Name] = e.Value
	}
	return settings, nil
}

// describeTopics asks for some settings of topics with one request. There is an answer
// for each.
func describeTopics(client sarama.Client, topics []string, keys ...string) ([]*sarama.ConfigResourceResult, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, err
	}
	asked := make([]*sarama.ConfigResource, len(topics))
	for i, topic := range topics {
		asked[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: keys}
	}
	answers, err := admin.DescribeConfigs(asked, sarama.DescribeConfigsOptions{})
	if err == nil && len(answers) != len(asked) {
		err = sarama.ErrIncompleteResponse
	}
	return answers, err
}
