package kafka

import (
	"fmt"
	"sync"
	"time"
)

const (
	// batchShare is the part of a transaction's time that a batch may take. The
	// coordinator ends a transaction that takes longer, which looks like being fenced.
	batchShare = 3. / 4
	// stallTicks is in how many looks at a batch no record must have been acknowledged
	// for it to have stalled.
	stallTicks = 4
	// usualLongest is the default of the brokers' transaction.max.timeout.ms.
	usualLongest = 15 * time.Minute
	// throttleLogEvery is how often it is logged that brokers throttle us.
	throttleLogEvery = time.Minute
)

// patience is how long the transactions of a connector may take. A batch that brokers
// take slowly but steadily, as they do beyond a quota, gets more time at the next claim
// than is configured; when batches are quick again it is what is configured. Its methods
// are safe for concurrent use.
type patience struct {
	mu      sync.Mutex
	more    time.Duration // asked for at the next claim; 0 asks for what is configured
	ceiling time.Duration // the longest that the brokers allow; 0 while not known
}

// timeout is what the next claim asks for.
func (p *patience) timeout(configured time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.more, configured)
}

// outran takes note of a batch of which only acked of all its bytes were acknowledged in
// its share of the time limit. It reports whether the next one gets more time. Where the
// brokers allow no more they are asked all the same: somebody may have raised that since.
func (p *patience) outran(acked, all int64, limit time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := 2 * limit
	if acked > 0 {
		// What all takes at this rate, twice: a quota lets the first bytes pass at any rate.
		wanted = max(wanted, time.Duration(2*float64(limit)*min(float64(all)/float64(acked), 1000)))
	}
	if p.ceiling > 0 && limit >= p.ceiling {
		p.more, p.ceiling = wanted, 0
		return false
	}
	if p.ceiling > 0 {
		wanted = min(wanted, p.ceiling)
	}
	p.more = wanted
	return true
}

// refused takes note that the brokers do not allow what was asked for, but longest; 0
// where they do not tell. Then the next claim asks for what most brokers allow, or for
// less and less.
func (p *patience) refused(asked, longest, configured time.Duration) {
	switch {
	case longest > 0:
	case asked > usualLongest && configured < usualLongest:
		longest = usualLongest
	case asked-configured > time.Second:
		longest = configured + (asked-configured)/2
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = max(longest, configured)
	p.ceiling = p.more
}

// kept takes note of a batch that had time to spare within what is configured.
func (p *patience) kept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = 0
}

// outranError explains a batch that took too long although brokers acknowledged it bit
// by bit.
func outranError(acked, all int64, took, limit time.Duration, more bool) *Error {
	text := fmt.Sprintf("publishing a batch: %d of its %d bytes were acknowledged in %s (%.0f bytes a second), "+
		"and a transaction of %s leaves no more time", acked, all, took.Round(time.Second), float64(acked)/took.Seconds(),
		limit)
	if more {
		text += ": the next attempt asks the brokers for a longer one"
	} else {
		text += ", the brokers' longest: raise this client's quota (producer_byte_rate) or " + maxTransactionTimeoutKey
	}
	return newError(Timeout, text, nil)
}

// throttle tells that brokers make us wait, as they do beyond a quota. Its methods are
// safe for concurrent use.
type throttle struct {
	pub   *Publisher
	mu    sync.Mutex
	said  time.Time
	until time.Time
}

// now reports whether a broker has us wait at the moment.
func (t *throttle) now() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.until)
}

// waits is called by sarama before it waits for what a broker asks.
func (t *throttle) waits(d time.Duration) {
	if d <= 0 {
		return
	}
	t.pub.metrics.throttled.Add(d.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if end := now.Add(d); end.After(t.until) {
		t.until = end
	}
	if now.Sub(t.said) >= throttleLogEvery {
		t.said = now
		t.pub.log.Warn("the brokers throttle this client, as they do beyond a quota", "wait", d, "client_id",
			t.pub.cfg.ClientID)
	}
}
