package kafka_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// The broker is in the same process and throws the records away, so these are
// about the client's own cost.
func BenchmarkCommit(b *testing.B) {
	for _, d := range deliveries() {
		for _, rows := range []int{1, 100, 10000} {
			b.Run(fmt.Sprintf("%s/rows=%d", d.name, rows), func(b *testing.B) {
				opts := []kfake.Opt{kfake.SeedTopics(3, "orders")}
				if d.partial {
					opts = append(opts, kfake.BlackholeProduce())
				}
				c := kafkatest.Start(b, opts...)
				s := open(b, d.make(publisher(b, config(c.Brokers()))))
				batch := newBatcher("orders").next(rows, 1)
				value := bytes.Repeat([]byte("x"), 250)
				for i, r := range all(batch) {
					r.Value = value
					r.Key = fmt.Appendf(nil, "key-%d", i)
				}
				commit(b, s, batch)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					commit(b, s, batch)
				}
				b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}
