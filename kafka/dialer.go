package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// errStopped is what sarama gets for every connection and request once the sink
// has failed or has to end.
var errStopped = errors.New("the sink has stopped")

// dialer opens all connections of one sink's session, so that they can be cut at
// once: sarama's calls take no context, and this is what ends them.
//
// It is safe for concurrent use.
type dialer struct {
	cfg *Config
	// oneEpoch refuses produce requests under another producer epoch than the
	// first. See conn.Write.
	oneEpoch bool

	mu      sync.Mutex
	stopped bool
	open    map[*conn]struct{}
	dials   map[*context.CancelFunc]struct{}

	epoch atomic.Int32 // of the first produce request, plus one; 0 is none yet
	claims
}

func newDialer(cfg *Config, oneEpoch bool) *dialer {
	return &dialer{cfg: cfg, oneEpoch: oneEpoch, open: map[*conn]struct{}{}, dials: map[*context.CancelFunc]struct{}{}}
}

// Dial implements sarama's dialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.DialTimeout)
	defer cancel()
	if !d.begin(&cancel) {
		return nil, errStopped
	}
	defer d.end(&cancel)
	dial := d.cfg.Dialer
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	raw, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	nc := raw
	if d.cfg.TLS != nil {
		if nc, err = d.handshake(ctx, raw, address); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
	}
	c := &conn{Conn: nc, raw: raw, dialer: d, claim: claimReader{claims: &d.claims}}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil, errors.Join(errStopped, raw.Close())
	}
	d.open[c] = struct{}{}
	return c, nil
}

func (d *dialer) begin(cancel *context.CancelFunc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.dials[cancel] = struct{}{}
	return true
}

func (d *dialer) end(cancel *context.CancelFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dials, cancel)
}

// stop cuts all connections and refuses new ones. Nothing is written to any
// broker after it has returned.
func (d *dialer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	for cancel := range d.dials {
		(*cancel)()
	}
	for c := range d.open {
		_ = c.raw.Close() // the sink is done with it, whatever it says
	}
	clear(d.open)
}

func (d *dialer) isStopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopped
}

// conn is a broker connection as sarama sees it.
type conn struct {
	net.Conn          // TLS or plain
	raw      net.Conn // the network's
	dialer   *dialer
	claim    claimReader
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// Write sends one request.
//
// When sarama's idempotent producer gives up a batch it counts its epoch up and
// goes on with the records behind it: a gap, and later a repetition out of order.
// By the time the failure comes out of its error channel those may be on their
// way. But they carry the new epoch, so the gap is stopped here for certain: a
// produce request of another epoch than the first one's never leaves.
func (c *conn) Write(request []byte) (int, error) {
	if c.dialer.oneEpoch {
		if epoch, ok := produceEpoch(request); ok && !c.dialer.sameEpoch(epoch) {
			return 0, fmt.Errorf("refusing to publish past a record that failed: %w", errStopped)
		}
	}
	c.claim.wrote(request)
	return c.Conn.Write(request)
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.claim.read(b[:n])
	return n, err
}

// sameEpoch reports whether no other epoch was seen before this one.
func (d *dialer) sameEpoch(epoch int16) bool {
	e := int32(epoch) + 1
	return d.epoch.CompareAndSwap(0, e) || d.epoch.Load() == e
}

// produceEpoch returns the highest producer epoch in a request if it is a produce
// request; sarama writes each request in one piece.
func produceEpoch(request []byte) (epoch int16, ok bool) {
	const header = 4 + 2 + 2 + 4 + 2 // length, key, version, correlation id, length of the client id
	if len(request) < header || binary.BigEndian.Uint16(request[4:]) != uint16(kmsg.Produce) {
		return 0, false
	}
	body := header + max(0, int(int16(binary.BigEndian.Uint16(request[12:]))))
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(int16(binary.BigEndian.Uint16(request[6:])))
	if req.IsFlexible() {
		body++ // the header's tagged fields, which sarama leaves empty
	}
	if body > len(request) || req.UnsafeReadFrom(request[body:]) != nil {
		return 0, false
	}
	const epochAt, batchHeader = 51, 61 // of a record batch, magic 2
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			if len(p.Records) >= batchHeader {
				epoch, ok = max(epoch, int16(binary.BigEndian.Uint16(p.Records[epochAt:]))), true
			}
		}
	}
	return epoch, ok
}

// handshake makes a TLS connection out of raw.
func (d *dialer) handshake(ctx context.Context, raw net.Conn, address string) (net.Conn, error) {
	cfg, err := d.cfg.TLS()
	if err == nil {
		cfg = cfg.Clone()
		var host string
		host, _, err = net.SplitHostPort(address)
		cfg.ServerName = cmp.Or(cfg.ServerName, host)
	}
	if err != nil {
		return nil, newError(TLSFailed, "preparing TLS for broker "+address, err)
	}
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, newError(TLSFailed, "TLS handshake with broker "+address+" failed: check the CA, the host name in the "+
			"certificate, and that the port speaks TLS", err)
	}
	return c, nil
}
