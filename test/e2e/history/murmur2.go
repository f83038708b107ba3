package history

import "encoding/binary"

// PartitionOf returns the partition that Kafka's Java producer chooses for a
// record with this key: murmur2 of the key, sign bit cleared, modulo the number
// of partitions (org.apache.kafka.common.utils.Utils.murmur2).
func PartitionOf(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

func murmur2(data []byte) uint32 {
	const seed, m, r = 0x9747b28c, 0x5bd1e995, 24
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data)
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}
