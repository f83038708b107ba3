package kproxy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// headerLen is what every request begins with: length, key, version and
// correlation id. maxFrame is more than any broker takes.
const (
	headerLen = 4 + 2 + 2 + 4
	maxFrame  = 256 << 20
)

// Request is one request as it came, with its length in front.
type Request struct{ Frame []byte }

// Key says of which kind the request is.
func (r Request) Key() kmsg.Key { return kmsg.Key(binary.BigEndian.Uint16(r.Frame[4:])) }

// Version is the request's version of its kind.
func (r Request) Version() int16 { return int16(binary.BigEndian.Uint16(r.Frame[6:])) }

// Name is the name of the kind, as EndTxn.
func (r Request) Name() string { return r.Key().Name() }

func (r Request) correlation() uint32 { return binary.BigEndian.Uint32(r.Frame[8:]) }

func correlationOf(answer []byte) uint32 { return binary.BigEndian.Uint32(answer[4:]) }

// Decode reads the request's fields. It returns nil for what kmsg does not know.
func (r Request) Decode() kmsg.Request {
	req := kmsg.RequestForKey(int16(r.Key()))
	if req == nil {
		return nil
	}
	req.SetVersion(r.Version())
	body := r.Frame[headerLen:]
	if len(body) < 2 {
		return nil
	}
	id := int(int16(binary.BigEndian.Uint16(body)))
	skip := 2 + max(0, id)
	if req.IsFlexible() {
		skip++ // the header's tagged fields, which clients leave empty
	}
	if skip > len(body) || req.ReadFrom(body[skip:]) != nil {
		return nil
	}
	return req
}

// answerCode is the error code that an answer carries at its top, "?" if none.
func (r Request) answerCode(answer []byte) string {
	req := kmsg.RequestForKey(int16(r.Key()))
	if req == nil {
		return "?"
	}
	resp := req.ResponseKind()
	resp.SetVersion(r.Version())
	skip := 8
	if resp.IsFlexible() {
		skip++
	}
	if skip > len(answer) || resp.ReadFrom(answer[skip:]) != nil {
		return "?"
	}
	switch resp := resp.(type) {
	case *kmsg.EndTxnResponse:
		return strconv.Itoa(int(resp.ErrorCode))
	case *kmsg.InitProducerIDResponse:
		return strconv.Itoa(int(resp.ErrorCode))
	case *kmsg.ProduceResponse:
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return strconv.Itoa(int(p.ErrorCode))
				}
			}
		}
		return "0"
	}
	return "?"
}

// readFrame reads one request or answer with its length in front.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 4 || n > maxFrame {
		return nil, fmt.Errorf("a Kafka frame of %d bytes", n)
	}
	frame := make([]byte, 4+n)
	copy(frame, head[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// Rule gives requests of one kind a fate with some chance. The delay is drawn
// between Least and Most.
type Rule struct {
	Key         kmsg.Key
	Action      Action
	Chance      float64
	Least, Most time.Duration
}

// Rules returns a decider that tries the rules in order for each request; what
// none of them takes passes.
func Rules(random *rand.Rand, rules ...Rule) Decider {
	var mu sync.Mutex
	return func(r Request) Fate {
		mu.Lock()
		defer mu.Unlock()
		x := random.Float64()
		for _, rule := range rules {
			if rule.Key != r.Key() {
				continue
			}
			if x < rule.Chance {
				delay := rule.Least
				if rule.Most > rule.Least {
					delay += time.Duration(random.Int64N(int64(rule.Most - rule.Least)))
				}
				return Fate{Action: rule.Action, Delay: delay}
			}
			x -= rule.Chance
		}
		return Fate{}
	}
}
