package kafka

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func frame(correlation uint32, flexible bool, body []byte) []byte {
	f := binary.BigEndian.AppendUint32(nil, correlation)
	if flexible {
		f = append(f, 0)
	}
	f = append(f, body...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(f))), f...)
}

// The answer to the claim stands among others, cut anywhere.
func TestClaimIsReadOffTheWire(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		request := binary.BigEndian.AppendUint32(nil, 8)
		request = binary.BigEndian.AppendUint16(request, uint16(kmsg.InitProducerID))
		request = binary.BigEndian.AppendUint16(request, uint16(version))
		request = binary.BigEndian.AppendUint32(request, 7)
		answer := kmsg.NewPtrInitProducerIDResponse()
		answer.SetVersion(version)
		answer.ProducerID, answer.ProducerEpoch = 4711, 42
		stream := frame(6, false, make([]byte, 3*claimAnswer))
		stream = append(stream, frame(7, answer.IsFlexible(), answer.AppendTo(nil))...)
		stream = append(stream, 0, 0, 0, 0) // a frame of nothing
		refused := kmsg.NewPtrInitProducerIDResponse()
		refused.SetVersion(version)
		refused.ErrorCode, refused.ProducerID = 51, -1
		again := frame(7, refused.IsFlexible(), refused.AppendTo(nil))
		for size := 1; size <= len(stream); size++ {
			r := claimReader{claims: &claims{}}
			r.wrote(request)
			for rest := stream; len(rest) > 0; {
				n := min(size, len(rest))
				r.read(rest[:n])
				rest = rest[n:]
			}
			r.wrote(request)
			r.read(again) // does not take it back
			if id, ok := r.claims.claimed(); !ok || id != (producerID{4711, 42}) {
				t.Fatalf("version %d in pieces of %d: %v, %v", version, size, id, ok)
			}
		}
	}
}
