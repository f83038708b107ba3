package kafka

import (
	"maps"
	"slices"
)

const (
	// maxEndings bounds the partitions that one position record names.
	maxEndings = 2000
	// maxFormer bounds the producer ids that are remembered.
	maxFormer = 8
)

// topicPartition names one partition.
type topicPartition struct {
	topic string
	id    int32
}

// ending is where records of ours end in a partition whose transaction's marker is not
// known to be there: the last batch's, and older ones' whose leader can't be asked.
type ending struct {
	producer int64
	epoch    int16
	// offset is that of the last record, -1 when the broker did not say it; sequence is
	// its number among the producer's records in this partition and epoch, as Kafka
	// counts them.
	offset   int64
	sequence int32
	// aborted says that nothing of it was committed: what is open there is to be aborted.
	aborted bool
	// earlier says that it is not of the transaction whose position record names it.
	earlier bool
}

// trace is what a position record says beside the position: where the batch's records
// end, so that whoever finds a transaction open there knows whether it was committed.
type trace struct {
	Producer int64 `json:"producer"`
	// Former are the ids that the connector's producers had before.
	Former  []int64       `json:"former,omitempty"`
	Endings []endingsJSON `json:"endings,omitempty"`
	// Unnamed says that there are more partitions than are named.
	Unnamed bool `json:"unnamed,omitempty"`
}

// endingsJSON are those of one epoch: by topic, the partition, offset and sequence of
// each.
type endingsJSON struct {
	Producer int64                 `json:"producer"`
	Epoch    int16                 `json:"epoch"`
	Aborted  bool                  `json:"aborted,omitempty"`
	Earlier  bool                  `json:"earlier,omitempty"`
	Topics   map[string][][3]int64 `json:"topics"`
}

func newEvents(producer int64, former []int64, all map[topicPartition]ending) *trace {
	t := &trace{Producer: producer, Former: former, Unnamed: len(all) > maxEndings}
	type group struct {
		producer         int64
		epoch            int16
		aborted, earlier bool
	}
	at := map[group]int{}
	n := 0
	for p, e := range all {
		if n++; n > maxEndings {
			break
		}
		g := group{e.producer, e.epoch, e.aborted, e.earlier}
		i, ok := at[g]
		if !ok {
			i = len(t.Endings)
			at[g] = i
			t.Endings = append(t.Endings, endingsJSON{e.producer, e.epoch, e.aborted, e.earlier, map[string][][3]int64{}})
		}
		topics := t.Endings[i].Topics
		topics[p.topic] = append(topics[p.topic], [3]int64{int64(p.id), e.offset, int64(e.sequence)})
	}
	return t
}

// shorten leaves out half of the partitions that are named. It returns false when there
// is none.
func (t *trace) shorten() bool {
	all := t.endings()
	if len(all) == 0 {
		return false
	}
	keep := len(all) / 2
	for at := range all {
		if len(all) == keep {
			break
		}
		delete(all, at)
	}
	t.Endings, t.Unnamed = newEvents(t.Producer, t.Former, all).Endings, true
	return true
}

// endings is the inverse.
func (t *trace) endings() map[topicPartition]ending {
	all := map[topicPartition]ending{}
	if t == nil {
		return all
	}
	for _, g := range t.Endings {
		for topic, places := range g.Topics {
			for _, p := range places {
				all[topicPartition{topic, int32(p[0])}] = ending{g.Producer, g.Epoch, p[1], int32(p[2]), g.Aborted, g.Earlier}
			}
		}
	}
	return all
}

// ids returns the producer ids that the connector had until the trace was written.
func (t *trace) ids(now int64) []int64 {
	if t == nil {
		return nil
	}
	ids := append(slices.Clone(t.Former), t.Producer)
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id < 0 || id == now })
	return ids[max(0, len(ids)-maxFormer):]
}

// hanging is a transaction that a partition's leader says is open.
type hanging struct {
	producer int64
	epoch    int32
	sequence int32 // of the producer's last record in the partition
	start    int64 // offset of the transaction's first record
}

// verdict is what is to be made of an open transaction that its coordinator has ended.
type verdict int

const (
	undecided verdict = iota
	toCommit
	toAbort
)

// judge says what becomes of h. e is what is known of committed records in its
// partition; nil says that there are none behind any marker.
func judge(h hanging, e *ending) verdict {
	switch {
	case e == nil || e.aborted:
		return toAbort
	case h.producer == e.producer && h.epoch == int32(e.epoch) && h.sequence == e.sequence:
		return toCommit // it ends with the committed records
	case h.producer != e.producer || e.offset >= 0 && h.start > e.offset:
		return toAbort // it begins behind them
	default:
		return undecided
	}
}

func byTopic(parts []topicPartition) map[string][]int32 {
	out := map[string][]int32{}
	for _, p := range parts {
		out[p.topic] = append(out[p.topic], p.id)
	}
	return out
}

func sorted[V any](m map[topicPartition]V) []topicPartition {
	return slices.SortedFunc(maps.Keys(m), func(a, b topicPartition) int {
		if a.topic != b.topic {
			if a.topic < b.topic {
				return -1
			}
			return 1
		}
		return int(a.id - b.id)
	})
}
