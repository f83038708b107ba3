package connector_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// source has one transaction with two rows and then waits for more.
type source struct{ waiting chan txn.Transaction }

func (s source) Open(context.Context, position.Position) (connector.Source, error) { return s, nil }

func (source) Start(context.Context) (position.Position, error) {
	return position.Position{Set: position.NewSet(position.MySQL)}, nil
}

func (s source) Next(ctx context.Context) ([]txn.Transaction, error) {
	select {
	case t := <-s.waiting:
		return []txn.Transaction{t}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (source) Status() canal.Status { return canal.Status{} }
func (source) Close() error         { return nil }

// sink prints what it is given and keeps no position.
type sink struct{ published chan struct{} }

func (s sink) NewSink(uint64) (connector.Sink, error) { return s, nil }
func (sink) KeepsPosition() bool                      { return false }
func (sink) Check(*txn.Record) error                  { return nil }
func (sink) IdleCommit() time.Duration                { return time.Second }

func (sink) Open(context.Context) (pos position.Position, found bool, err error) {
	return pos, false, nil
}

func (s sink) Commit(_ context.Context, b *txn.Batch) (done int, err error) {
	for _, g := range b.Groups {
		for _, r := range g.Records {
			fmt.Printf("%s: %s\n", r.Topic, r.Value)
		}
	}
	close(s.published)
	return len(b.Groups), nil
}

func (sink) Close(context.Context) error { return nil }

// encoder sends the first column of each row.
type encoder struct{}

func (encoder) Encode(_ *txn.Arena, row *schema.Row) (txn.Record, bool, error) {
	return txn.Record{Topic: "orders", Value: []byte(row.After[0].(string))}, true, nil
}

func (encoder) RawFallback(*schema.Row) (key, value []byte) { return nil, nil }

// positions keeps a position in memory.
type positions struct{ stored *position.Position }

func (p positions) Position() (position.Position, bool)          { return *p.stored, p.stored.Set != nil }
func (p positions) Begin(uint64) (position.Position, bool)       { return p.Position() }
func (positions) RowDecisions() ([]connector.RowDecision, error) { return nil, nil }
func (positions) Wanted() connector.State                        { return connector.StateRunning }
func (positions) Changed() <-chan struct{}                       { return nil }

func (positions) DecideRow(context.Context, connector.RowDecision) error { return nil }

func (p positions) SavePosition(_ context.Context, pos position.Position) error {
	*p.stored = pos
	return nil
}

// A connector takes transactions from a source, has their rows encoded, and gives them to
// a sink in batches; then it saves how far it has come.
func Example() {
	gtid, err := position.ParseGTID("3e11fa47-71ca-11e1-9e33-c80aa9429562:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	src, dst, stored := source{make(chan txn.Transaction, 1)}, sink{make(chan struct{})}, position.Position{}
	outbox := &schema.Table{Name: schema.Name{Database: "shop", Table: "outbox"}}
	src.waiting <- txn.Transaction{
		Commit: position.Commit{GTID: gtid, First: gtid.Seq},
		Final:  true,
		Rows: []schema.Row{
			{Table: outbox, Op: schema.Insert, After: []any{"ordered"}},
			{Table: outbox, Op: schema.Insert, After: []any{"paid"}},
		},
	}
	cfg := connector.DefaultConfig()
	cfg.Name = "shop"
	c := connector.New(cfg, src, dst, encoder{}, positions{&stored}, nil, slog.New(slog.DiscardHandler))

	leadership, lost := context.WithCancel(context.Background())
	defer lost()
	drain, end := context.WithCancel(leadership)
	ended := make(chan struct{})
	go func() {
		c.Run(drain, leadership, 1)
		close(ended)
	}()
	<-dst.published
	end()
	<-ended
	fmt.Println("saved:", stored.Set)
	// Output:
	// orders: ordered
	// orders: paid
	// saved: 3e11fa47-71ca-11e1-9e33-c80aa9429562:1
}
