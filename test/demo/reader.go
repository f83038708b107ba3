package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// reader is a consumer of the shop's events, as any service would be.
type reader struct {
	follower *kafkatest.Follower

	mu   sync.Mutex
	seen map[string]int // by the header id
	last map[string]string
}

func newReader(ctx context.Context, broker string) (*reader, error) {
	r := &reader{seen: map[string]int{}, last: map[string]string{}}
	var err error
	r.follower, err = kafkatest.Reader{Brokers: []string{broker}}.Follow(ctx, r.add, "outbox.event.order")
	return r, err
}

func (r *reader) close() { r.follower.Stop() }

func (r *reader) add(records []kafkatest.Record, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range records {
		var id string
		var headers []string
		for _, h := range rec.Headers {
			if h.Key == "id" {
				id = string(h.Value)
			}
			headers = append(headers, h.Key+"="+string(h.Value))
		}
		r.seen[id]++
		r.last[id] = fmt.Sprintf("%s[%d]@%d key=%s value=%s\n           headers: %s",
			rec.Topic, rec.Partition, rec.Offset, rec.Key, rec.Value, strings.Join(headers, ", "))
	}
}

// describe waits for the record of one outbox row and returns it as text.
func (r *reader) describe(ctx context.Context, id string) string {
	for range 600 {
		r.mu.Lock()
		text := r.last[id]
		r.mu.Unlock()
		if text != "" || ctx.Err() != nil {
			return text
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "nothing has arrived within 30 s"
}

// waitFor returns when all of ids have arrived, or after limit.
func (r *reader) waitFor(ctx context.Context, ids map[string]bool, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if lost, _ := r.compare(ids); lost == 0 {
			time.Sleep(time.Second) // what would come twice has the time to
			return
		}
	}
}

func (r *reader) compare(ids map[string]bool) (lost, twice int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range ids {
		if r.seen[id] == 0 {
			lost++
		}
	}
	for _, n := range r.seen {
		twice += n - 1
	}
	return lost, twice
}

// count prints the result and returns an error when a promise was broken.
func (r *reader) count(out io.Writer, ids map[string]bool) error {
	lost, twice := r.compare(ids)
	r.mu.Lock()
	received, invented := 0, 0
	for id, n := range r.seen {
		received += n
		if !ids[id] {
			invented++
		}
	}
	r.mu.Unlock()
	fmt.Fprintf(out, "\n== written %d, received %d, lost %d, duplicated %d, invented %d\n", len(ids), received, lost,
		twice, invented)
	if lost+invented+twice > 0 {
		return fmt.Errorf("a promise was broken: %d lost, %d duplicated, %d invented", lost, twice, invented)
	}
	return nil
}
