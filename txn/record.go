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
	// Mark is the index in the batch's marks of the transaction that the record is of.
	// Records are in the order of their marks. One beyond the last stands for a
	// transaction whose end is still to come.
	Mark int
}
