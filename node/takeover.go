package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// IgnoreDebeziumOffset is the flag of run that begins without Debezium's position.
const IgnoreDebeziumOffset = "ignore-debezium-offset"

// maxOffsets bounds a worker's file of offsets, which has some hundred bytes for each
// connector.
const maxOffsets = 64 << 20

// inherited is the position that Debezium has left of this connector, with which one that
// has none of its own begins; nil when there is none to be looked for. Rows would be lost or
// repeated without it.
func (s *sources) inherited(ctx context.Context) (*position.Position, error) {
	c := &s.cfg.Source
	if c.DebeziumOffsets != "" {
		stored, err := s.inFile(c.DebeziumOffsets)
		if err != nil {
			return nil, &inheritError{name: s.cfg.Name, where: c.DebeziumOffsets, unread: true, err: err}
		}
		if stored != nil {
			return s.inherit(ctx, c.DebeziumOffsets, stored)
		}
	}
	for _, topic := range c.DebeziumTopics {
		stored, err := s.inTopic(ctx, topic)
		if err != nil {
			return nil, err
		}
		if stored != nil {
			return s.inherit(ctx, "topic "+topic, stored)
		}
	}
	return nil, nil
}

func (s *sources) key() offset.Key {
	return offset.Key{Connector: s.cfg.Name, Server: s.cfg.TopicPrefix}
}

func (s *sources) inFile(path string) ([]byte, error) {
	entries, err := offsetsInFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return offset.Find(entries, s.key()), err
}

func offsetsInFile(path string) ([]offset.Entry, error) {
	data, err := config.ReadFileUpTo(path, maxOffsets)
	if err != nil {
		return nil, err
	}
	return offset.ReadFile(data)
}

// OffsetInFile reads the offset of one of Debezium's connectors in a worker's file.
func OffsetInFile(path, name string) (json.RawMessage, error) {
	entries, err := offsetsInFile(path)
	if err != nil {
		if _, named := errors.AsType[*fs.PathError](err); !named {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return nil, err
	}
	return oneOf(entries, path, name)
}

func oneOf(entries []offset.Entry, where, name string) (json.RawMessage, error) {
	key := offset.Key{Connector: name}
	if stored := offset.Find(entries, key); stored != nil {
		return stored, nil
	}
	return nil, fmt.Errorf("%s: %w", where, offset.NotFound(entries, key))
}

// inTopic returns the connector's offset in a topic, once Debezium's connector is stopped. One
// that runs may have none yet.
func (s *sources) inTopic(ctx context.Context, topic string) ([]byte, error) {
	kc, err := kafkaConfig(s.node, s.cfg)
	if err != nil {
		return nil, err
	}
	kc.Dialer = s.dial
	if err := s.stopped(ctx, kc, topic); err != nil {
		return nil, err
	}
	entries, err := offsetsIn(ctx, kc, topic)
	if isMissing(err) {
		return nil, nil
	}
	stored := offset.Find(entries, s.key())
	if stored != nil && err == nil && s.cfg.Source.DebeziumStatus == "" {
		err = s.waits(topic, "whether Debezium's connector is stopped is not known without source.debezium_status_topic")
	}
	return stored, err
}

func isMissing(err error) bool {
	e, ok := errors.AsType[*kafka.Error](err)
	return ok && e.Code == kafka.TopicMissing
}

// offsetsIn reads what a topic of a worker's has of Debezium's connectors.
func offsetsIn(ctx context.Context, kc kafka.Config, topic string) ([]offset.Entry, error) {
	all, err := kafka.Latest(ctx, kc, topic, func(key []byte) bool {
		_, ok := offset.ParseKey(key)
		return ok
	})
	var out []offset.Entry
	for key, value := range all {
		out = append(out, offset.Entry{Key: []byte(key), Value: value})
	}
	return out, err
}

// OffsetInTopic reads the offset of one of Debezium's connectors in a topic of brokers that
// ask for no credentials.
func OffsetInTopic(ctx context.Context, brokers []string, topic, name string) (json.RawMessage, error) {
	kc := kafka.DefaultConfig()
	kc.Brokers, kc.Connector = brokers, name
	return storedIn(ctx, kc, topic, name)
}

func storedIn(ctx context.Context, kc kafka.Config, topic, name string) (json.RawMessage, error) {
	entries, err := offsetsIn(ctx, kc, topic)
	if err != nil {
		return nil, err
	}
	return oneOf(entries, "topic "+topic, name)
}

// stopped returns an error that passes while Debezium's connector may publish more than its
// offset says.
func (s *sources) stopped(ctx context.Context, kc kafka.Config, topic string) error {
	if s.cfg.Source.DebeziumStatus == "" {
		return nil
	}
	states, err := kafka.Latest(ctx, kc, s.cfg.Source.DebeziumStatus, func(key []byte) bool {
		_, ok := offset.StatusOf(key, s.cfg.Name)
		return ok
	})
	if err != nil && !isMissing(err) {
		return err
	}
	for key, value := range states {
		if why := offset.Runs([]byte(key), value, s.cfg.Name); why != "" {
			return s.waits(topic, why)
		}
	}
	return nil
}

func (s *sources) waits(topic, why string) error {
	return &inheritError{name: s.cfg.Name, where: "topic " + topic, waiting: true, err: errors.New(why)}
}

func (s *sources) inherit(ctx context.Context, where string, stored []byte) (*position.Position, error) {
	at, err := offset.Parse(stored)
	var found adoption
	if err == nil {
		found, err = s.adopt(ctx, at, nil)
		if _, refused := errors.AsType[*offsetError](err); err != nil && !refused {
			return nil, err
		}
	}
	if err != nil {
		return nil, &inheritError{name: s.cfg.Name, where: where, err: err}
	}
	s.canal.Logger.Warn("beginning where Debezium has stopped; if it did not stop in good order, what it published "+
		"after it noted that comes again",
		"offset", where, "position", found.to.String(), "notes", found.notes)
	return &found.to, nil
}

// inheritError is a position of Debezium's that can't be taken over.
type inheritError struct {
	name, where string
	// unread is set when it can't be told whether there is one, waiting when Debezium's
	// connector is not stopped.
	unread, waiting bool
	err             error
}

func (e *inheritError) Error() string {
	if e.waiting {
		return fmt.Sprintf("there is no position of connector %s here, and Debezium's is not known to be stopped (%v): "+
			"this one begins where that has stopped, by %s, as soon as it is STOPPED. "+
			"PUT /connectors/%s/stop at Connect, or run with --%s", e.name, e.err, e.where, e.name, IgnoreDebeziumOffset)
	}
	if e.unread {
		return fmt.Sprintf("whether Debezium has a position of connector %s in %s can't be told (%v): give this "+
			"process the right to read it, have Debezium write it anew, or run with --%s", e.name, e.where, e.err,
			IgnoreDebeziumOffset)
	}
	return fmt.Sprintf("Debezium has a position of connector %s in %s, and there is none here: to begin without it "+
		"would lose or repeat rows. It can't be taken over by itself (%v). "+
		"Set one with \"offset import\" or \"offset set\" while the connector is stopped, or run with --%s "+
		"(docs/migrate-from-debezium.md)", e.name, e.where, e.err, IgnoreDebeziumOffset)
}
func (e *inheritError) Unwrap() error   { return e.err }
func (e *inheritError) Retryable() bool { return e.waiting }
func (*inheritError) ErrCode() string   { return "debezium_offset_found" }
