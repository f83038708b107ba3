package txn

// Header is one record header. A nil Value is a null header value, which differs
// from an empty one.
type Header struct {
	Key   string
	Value []byte
}

// Record is one record to publish. Key and Value are nil for null, which differs
// from empty. The bytes belong to the Arena they were made in.
type Record struct {
	Topic string
	// Partition is used as it is; negative means the partitioner decides: murmur2 of
	// the serialised key as the Java producer does, any partition for a null key.
	Partition int32
	Key       []byte
	Value     []byte
	Headers   []Header
	// Timestamp is CreateTime in milliseconds since the epoch; negative means now.
	Timestamp int64
	// Row is the number of the record's row among the outbox rows of its transaction,
	// from 0. Event stands for the id of its event; 0 when nobody will ask for it.
	Row, Event uint64
	// PartitionOffset is where the record is. The sink sets it when it is acknowledged.
	PartitionOffset PartitionOffset
}

// PartitionOffset is where a record is in its topic.
type PartitionOffset struct {
	Partition int32
	Offset    int64 // negative when the broker did not say it
}
