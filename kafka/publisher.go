package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// Publisher makes the sinks of one connector, one for each session, and keeps what
// outlives a session. It is safe for concurrent use.
type Publisher struct {
	cfg      Config
	log      *slog.Logger
	metrics  *Metrics
	limits   *limits
	unseen   unseenTopics
	markers  time.Duration // markerPatience
	patience patience
	throttle throttle
	// uncertain says that somebody was told that the position topic's settings are not known.
	uncertain atomic.Bool
}

// NewPublisher checks cfg, which it keeps. m may be nil.
func NewPublisher(cfg Config, log *slog.Logger, m *Metrics) (*Publisher, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("checking the Kafka configuration: %w", err)
	}
	if m == nil {
		m = NewMetrics(nil)
	}
	p := &Publisher{cfg: cfg, log: log, metrics: m, limits: newLimits(), markers: markerPatience}
	p.throttle.pub = p
	return p, nil
}

// AtLeastOnce returns a sink for one session.
func (p *Publisher) AtLeastOnce() *AtLeastOnce {
	return &AtLeastOnce{pub: p}
}

// reach finds a broker that answers and returns its address. sarama would ask one
// seed over and over for a producer id, even a dead one. check looks at the
// connected broker.
func reach(sc *sarama.Config, brokers []string, check func(*sarama.Broker) error) (string, error) {
	seeds := slices.Clone(brokers)
	rand.Shuffle(len(seeds), func(i, j int) { seeds[i], seeds[j] = seeds[j], seeds[i] })
	var last error
	for _, addr := range seeds {
		b := sarama.NewBroker(addr)
		if err := b.Open(sc); err != nil {
			return "", newError(Unsupported, "checking the Kafka client's settings", err)
		}
		ok, err := b.Connected()
		if ok && err == nil {
			err = check(b)
		}
		_ = b.Close() // the answer is known
		if ok && err == nil {
			return addr, nil
		}
		last = fmt.Errorf("broker %s: %w", addr, err)
	}
	return "", last
}

// connect makes a producer that has found a living broker but sent nothing yet.
// transactionRetry is called before each repeated request of a transaction; sarama
// tells nobody else.
func (p *Publisher) connect(ctx context.Context, transactionalID string, transactionRetry func()) (*producer, error) {
	sees := false
	check := func(*sarama.Broker) error { return nil }
	if transactionalID != "" {
		check = func(b *sarama.Broker) (err error) {
			if sees, err = supportsExactlyOnce(b); err != nil {
				return err
			}
			awaitCoordinator(ctx, b, transactionalID)
			return nil
		}
	}
	d := newDialer(&p.cfg, transactionalID == "")
	var status atomic.Pointer[sarama.AsyncProducer]
	sc, err := saramaConfig(ctx, &p.cfg, transactionalID, d, hooks{
		produceRetry:     p.metrics.retries.Inc,
		throttled:        p.throttle.waits,
		transactionRetry: transactionRetry,
		hopeless: func() bool {
			a := status.Load()
			return a != nil && (*a).TxnStatus()&sarama.ProducerTxnFlagInError != 0
		},
	})
	if err != nil {
		return nil, err
	}
	sc.Producer.Transaction.Timeout = p.patience.timeout(p.cfg.TransactionTimeout)
	defer context.AfterFunc(ctx, d.stop)()
	seed, err := reach(sc, p.cfg.Brokers, check)
	if err != nil {
		d.stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, p.connectError(err)
	}
	client, err := sarama.NewClient([]string{seed}, sc)
	if err != nil {
		d.stop()
		return nil, classify("making the Kafka client", err)
	}
	return &producer{
		cfg: &p.cfg, metrics: p.metrics, dialer: d, topics: newTopics(&p.cfg, client, p.limits, p.log), client: client,
		status: &status, sees: sees, throttled: p.throttle.now,
		keys: map[string][]byte{}, by: map[string]sarama.Partitioner{}, wave: map[string]*waveTopic{},
		drained: make(chan struct{}), closed: make(chan struct{}),
	}, nil
}

// connectError explains why no broker could be reached. A broker that hangs up
// during the login, or that speaks TLS where we don't, says nothing: the
// connection just ends.
func (p *Publisher) connectError(err error) *Error {
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	switch {
	case hungUp && p.cfg.SASL != nil:
		return newError(AuthFailed, "connecting to Kafka: the broker hung up during the login: check user, password and "+
			"mechanism, and that this listener wants SASL", err)
	case hungUp && p.cfg.TLS == nil:
		return newError(Unreachable, "connecting to Kafka: the broker hung up: check whether this listener wants TLS or SASL",
			err)
	}
	return classify("connecting to Kafka", err)
}
