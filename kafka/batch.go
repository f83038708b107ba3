package kafka

import (
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Header is one record header. A nil Value is a null header value, which differs
// from an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record to publish. Key and Value are nil for null, which differs
// from empty. The sink owns all slices from the call of Commit until it returns;
// when Commit returns an error, until Close has returned.
type Record struct {
	Topic string
	// Partition is used as it is; negative means the partitioner decides:
	// murmur2 of the serialised key as the Java producer does, any partition for
	// a null key.
	Partition int32
	Key       []byte
	Value     []byte
	Headers   []Header
	// Timestamp is CreateTime in milliseconds since the epoch; negative means now.
	Timestamp int64
	// Mark is the index in Batch.Marks of the transaction that the record is of.
	// Records are in the order of their marks. len(Batch.Marks) stands for a
	// transaction whose end is still to come (Batch.Position is then Partial).
	Mark int
}

// Batch is what is made durable in one go: the records of whole transactions, in
// commit order, and the marks of all transactions that it covers, including those
// without records.
type Batch struct {
	Records []txn.Record
	Marks   []position.Mark
	// Position is where the connector is after the batch. It is read only.
	Position position.Position
	// Places is as long as Records, or empty when nobody wants to know. Commit puts
	// there where each record is that was acknowledged, and leaves the others.
	Places []Place
}

// Place is where a record is in its topic.
type Place struct {
	Partition int32
	Offset    int64 // negative when the broker did not say it
}
