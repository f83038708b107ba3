package kafka

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerID is how Kafka names one epoch of a producer; the id is -1 while it is not
// known.
type producerID struct {
	producer int64
	epoch    int16
}

// claims reads the id and epoch off the wire that the broker gives for the transactional
// id: the client library keeps them to itself, and whoever asked the coordinator for the
// current ones later would get those of another writer that has claimed it meanwhile,
// and could end that one's transaction.
type claims struct{ last atomic.Pointer[producerID] }

// claimed returns what the broker has given last.
func (c *claims) claimed() (producerID, bool) {
	if id := c.last.Load(); id != nil {
		return *id, true
	}
	return producerID{-1, -1}, false
}

// claimReader is that for one connection. One goroutine may write while another reads.
type claimReader struct {
	claims *claims
	// asked is the correlation id of the claim that is on its way and, above it, the
	// version plus one.
	asked atomic.Uint64

	// The frame that is being read: its length and its first bytes.
	head [4 + claimAnswer]byte
	n    int
	left int
}

const (
	requestHeader = 4 + 2 + 2 + 4 // length, key, version, correlation id
	// claimAnswer is more than an answer to a claim takes.
	claimAnswer = 64
)

// wrote looks at a request, which is in one piece.
func (r *claimReader) wrote(request []byte) {
	if len(request) < requestHeader || binary.BigEndian.Uint16(request[4:]) != uint16(kmsg.InitProducerID) {
		return
	}
	version := uint64(binary.BigEndian.Uint16(request[6:]))
	r.asked.Store((version+1)<<32 | uint64(binary.BigEndian.Uint32(request[8:])))
}

// read looks at some of what the broker sends.
func (r *claimReader) read(b []byte) {
	for len(b) > 0 {
		if r.n < 4 {
			k := copy(r.head[r.n:4], b)
			r.n, b = r.n+k, b[k:]
			if r.n < 4 {
				return
			}
			r.left = int(binary.BigEndian.Uint32(r.head[:]))
		}
		k := min(len(b), r.left)
		r.n += copy(r.head[r.n:], b[:k])
		r.left, b = r.left-k, b[k:]
		if r.left == 0 {
			r.answer(r.head[4:r.n])
			r.n = 0
		}
	}
}

func (r *claimReader) answer(frame []byte) {
	asked := r.asked.Load()
	if asked == 0 || len(frame) < 4 || binary.BigEndian.Uint32(frame) != uint32(asked) {
		return
	}
	r.asked.Store(0)
	answer := kmsg.NewPtrInitProducerIDResponse()
	answer.SetVersion(int16(asked>>32) - 1)
	body := frame[4:]
	if answer.IsFlexible() && len(body) > 0 {
		body = body[1:] // the header's tagged fields, of which there are none
	}
	if answer.ReadFrom(body) == nil && answer.ErrorCode == 0 {
		r.claims.last.Store(&producerID{answer.ProducerID, answer.ProducerEpoch})
	}
}
