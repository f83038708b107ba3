package kafka

import (
	"encoding/binary"
	"math/bits"

	"github.com/binlog-outbox/binlog-outbox/txn"
)

const (
	batchOverhead  = 61 // DefaultRecordBatch.RECORD_BATCH_OVERHEAD
	recordOverhead = 21 // DefaultRecord.MAX_RECORD_OVERHEAD

	// sarama's own estimate, which it compares with its limit and sums up to the
	// size of a batch.
	saramaOverhead       = 5*binary.MaxVarintLen32 + binary.MaxVarintLen64 + 1
	saramaHeaderOverhead = 2 * binary.MaxVarintLen32
)

// recordSize is what the client limit is compared with: the Java producer's upper
// bound of a batch that holds this record alone, uncompressed (KafkaProducer
// compares the same with max.request.size), or sarama's estimate where that is
// higher, since sarama refuses by it.
func recordSize(r *txn.Record) int {
	java := batchOverhead + recordOverhead + nullableSize(r.Key) + nullableSize(r.Value) + varintSize(len(r.Headers))
	for i := range r.Headers {
		java += varintSize(len(r.Headers[i].Key)) + len(r.Headers[i].Key) + nullableSize(r.Headers[i].Value)
	}
	return max(java, saramaSize(r))
}

// saramaSize is ProducerMessage.ByteSize.
func saramaSize(r *txn.Record) int {
	return saramaOverhead + payloadBytes(r) + len(r.Headers)*saramaHeaderOverhead
}

func nullableSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(len(b)) + len(b)
}

// varintSize is the length of a zigzag varint of n >= 0.
func varintSize(n int) int { return (bits.Len64(uint64(n)<<1|1) + 6) / 7 }
