package kafka

import (
	"github.com/IBM/sarama"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

// aim decides for each record which partition it goes to, as the partitioner does when
// the record is sent: whoever sends into a partition has to look at it before.
func (s *ExactlyOnce) aim(b *txn.Batch) (targets, error) {
	to := targets{slots: make([]int32, 0, txn.Count(b.Groups))}
	slot := map[topicPartition]int32{}
	var by sarama.Partitioner
	topic, all := "", []int32(nil)
	for i := range b.Groups {
		for j := range b.Groups[i].Records {
			r := &b.Groups[i].Records[j]
			if by == nil || r.Topic != topic {
				ids, err := s.p.client.Partitions(r.Topic)
				if err != nil {
					return to, onTopic(classify("looking up the partitions", err), r.Topic)
				}
				topic, all, by = r.Topic, ids, s.p.partitioner(r.Topic)
			}
			at, err := s.choose(by, r, all)
			if err != nil {
				return to, onTopic(classify("choosing a partition", err), r.Topic)
			}
			n, ok := slot[at]
			if !ok {
				n = int32(len(to.parts))
				slot[at] = n
				to.parts = append(to.parts, at)
			}
			to.slots = append(to.slots, n)
		}
	}
	return to, nil
}

func (s *ExactlyOnce) choose(by sarama.Partitioner, r *txn.Record, all []int32) (topicPartition, error) {
	if r.Partition >= 0 {
		return topicPartition{r.Topic, r.Partition}, nil
	}
	msg := &sarama.ProducerMessage{}
	if r.Key != nil {
		key := payload(r.Key)
		msg.Key = &key
	} else if writable, err := s.p.client.WritablePartitions(r.Topic); err == nil && len(writable) > 0 {
		all = writable
	}
	if len(all) == 0 {
		return topicPartition{}, sarama.ErrLeaderNotAvailable
	}
	n, err := by.Partition(msg, int32(len(all)))
	if err != nil {
		return topicPartition{}, err
	}
	return topicPartition{r.Topic, all[n]}, nil
}

// partitioner returns the partitioner of a topic.
func (p *producer) partitioner(topic string) sarama.Partitioner {
	by, ok := p.by[topic]
	if !ok {
		by = newPartitioner(topic)
		p.by[topic] = by
	}
	return by
}
