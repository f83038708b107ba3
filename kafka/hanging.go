package kafka

import (
	"fmt"
	"strings"
)

// maxOthers bounds the partitions that an error names beside its own.
const maxOthers = 10

// undecidable stops: rows of a committed batch and of another one are under one marker.
// others are partitions of the same transaction that share its fate.
func (s *ExactlyOnce) undecidable(at topicPartition, h hanging, e *ending, others ...topicPartition) *Error {
	text := "a transaction that Kafka has ended elsewhere is still open here, and nobody can tell whether it was committed"
	if e != nil && e.offset >= 0 {
		text = fmt.Sprintf("committed rows up to offset %d and rows of a later batch are in one transaction that is "+
			"still open", e.offset)
	}
	for i, o := range others {
		if i == maxOthers {
			text += fmt.Sprintf(", and in %d more partitions", len(others)-i)
			break
		}
		text += fmt.Sprintf(", as in topic %q partition %d", o.topic, o.id)
	}
	command := fmt.Sprintf("binlog-outbox settle %s %s %d ", s.pub.cfg.Connector, at.topic, at.id)
	return s.hangs(at, h, text,
		command+"commit loses nothing, and what was not committed comes twice",
		command+"abort repeats nothing, and what was committed is lost there")
}

// abandoned stops at what a producer id has left that Kafka has given up: its own tool
// can end it, and only by an abort.
func (s *ExactlyOnce) abandoned(at topicPartition, h hanging) *Error {
	lost := "which loses committed rows there if it holds any"
	if e, ok := s.parts.pending[at]; ok {
		switch judge(h, &e) {
		case toAbort:
			lost = "which loses nothing: it holds nothing that was committed"
		case toCommit:
			lost = fmt.Sprintf("which loses the committed rows up to offset %d there", e.offset)
		}
	}
	return s.hangs(at, h, "a transaction of a producer id that this connector had before is still open, and nobody can "+
		"end it but an administrator",
		s.toolAbort(at, h)+", "+lost)
}

// toolAbort is the command of Kafka's own tool.
func (s *ExactlyOnce) toolAbort(at topicPartition, h hanging) string {
	return fmt.Sprintf("kafka-transactions.sh --bootstrap-server %s abort --topic %s --partition %d --start-offset %d",
		s.pub.cfg.Brokers[0], at.topic, at.id, h.start)
}

func (s *ExactlyOnce) hangs(at topicPartition, h hanging, text string, choices ...string) *Error {
	e := newError(TransactionHanging, fmt.Sprintf("%s, from offset %d on (producer id %d, epoch %d); choose: %s",
		text, h.start, h.producer, h.epoch, strings.Join(choices, "; or: ")), nil)
	e.Topic, e.Partition = at.topic, at.id
	return e
}
