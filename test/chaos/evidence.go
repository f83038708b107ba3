package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/chaos/judge"
)

// readTopic reads a topic as a read_committed consumer up to its end, with the
// markers of transactions.
func readTopic(ctx context.Context, brokers []string, topic string,
	take func(*kgo.Record) error) ([]judge.Ends, error) {
	reader := kafkatest.Reader{Brokers: brokers}
	ends, err := reader.Ends(ctx, kafkatest.Only(topic))
	if err != nil {
		return nil, err
	}
	out := make([]judge.Ends, len(ends))
	for i, e := range ends {
		out[i] = judge.Ends{Topic: e.Topic, Partition: e.Partition, Stable: e.Stable, High: e.High}
	}
	return out, reader.Each(ctx, ends, take)
}

// positionReader reads the records of the position topic in the form that the
// product documents: "version crc {json}".
type positionReader struct {
	flavor position.Flavor
	full   map[string]*position.Set // by id
}

func (pr *positionReader) mark(r *kgo.Record) (*judge.Mark, error) {
	parts := strings.SplitN(string(r.Value), " ", 3)
	if len(parts) != 3 || parts[0] != "1" {
		return nil, fmt.Errorf("position topic, offset %d: a record of another form: %.60q", r.Offset, r.Value)
	}
	var v struct {
		ID       string             `json:"id"`
		Base     string             `json:"base"`
		Position *position.Position `json:"position"`
		Since    *position.Set      `json:"since"`
	}
	if err := json.Unmarshal([]byte(parts[2]), &v); err != nil {
		return nil, fmt.Errorf("position topic, offset %d: %w", r.Offset, err)
	}
	if v.Position == nil {
		return &judge.Mark{Open: true}, nil
	}
	m := &judge.Mark{Set: v.Position.Set, Seq: v.Position.Seq, Partial: len(v.Position.Partials) > 0}
	switch string(r.Key) {
	case "position":
		pr.full[v.ID] = m.Set
	case "since":
		base := pr.full[v.Base]
		if base == nil {
			return nil, fmt.Errorf("position topic, offset %d: it refers to a position %s that is not there", r.Offset, v.Base)
		}
		if v.Since == nil {
			return nil, fmt.Errorf("position topic, offset %d: it does not say which transactions were added", r.Offset)
		}
		m.Set = base.Clone()
		m.Set.AddSet(v.Since)
	default:
		return nil, fmt.Errorf("position topic, offset %d: unknown key %q", r.Offset, r.Key)
	}
	return m, nil
}

// readBinlog reads the source's binlog for itself: each transaction's GTID, and
// which transaction of the writers it is, from its ledger rows.
func (s *Stage) readBinlog(ctx context.Context) ([]judge.Commit, *position.Set, error) {
	source := s.source()
	statement := "SELECT @@GLOBAL.gtid_executed"
	if s.options.MariaDB {
		statement = "SELECT @@GLOBAL.gtid_binlog_pos"
	}
	text, err := source.Value(ctx, statement)
	if err != nil {
		return nil, nil, err
	}
	flavor := position.Flavor(source.Flavor())
	executed, err := position.ParseSet(flavor, text)
	if err != nil {
		return nil, nil, err
	}
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 4_000_000_000, Flavor: source.Flavor(), Host: source.Host(), Port: uint16(source.Port()),
		User: source.User(), Password: source.Password(),
		DisableRetrySync: true, Logger: quiet,
	})
	defer syncer.Close()
	empty, err := mysql.ParseGTIDSet(source.Flavor(), "")
	if err != nil {
		return nil, nil, err
	}
	streamer, err := syncer.StartSyncGTID(empty)
	if err != nil {
		return nil, nil, err
	}
	r := binlogReader{left: executed.Clone(), flavor: flavor}
	for !r.left.IsEmpty() {
		e, err := streamer.GetEvent(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the binlog, %s left: %w", r.left, err)
		}
		r.event(e)
	}
	// The last transaction's rows come behind its GTID event.
	for r.open {
		e, err := streamer.GetEvent(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the last transaction: %w", err)
		}
		r.event(e)
	}
	return r.commits, executed, nil
}

type binlogReader struct {
	flavor  position.Flavor
	left    *position.Set
	commits []judge.Commit
	open    bool
}

func (r *binlogReader) begin(g position.GTID) {
	r.commits = append(r.commits, judge.Commit{GTID: g})
	r.left.Remove(g)
	if r.flavor == position.MariaDB { // its sets are positions
		r.left = r.left.Subtract(setOf(r.flavor, g))
	}
	r.open = true
}

func setOf(f position.Flavor, g position.GTID) *position.Set {
	s := position.NewSet(f)
	s.Add(g)
	return s
}

func (r *binlogReader) event(e *replication.BinlogEvent) {
	switch ev := e.Event.(type) {
	case *replication.GTIDEvent:
		if id, err := uuid.FromBytes(ev.SID); err == nil {
			r.begin(position.GTID{SID: id, Seq: uint64(ev.GNO)})
		}
	case *replication.MariadbGTIDEvent:
		r.begin(position.GTID{Domain: ev.GTID.DomainID, Server: ev.GTID.ServerID, Seq: ev.GTID.SequenceNumber})
	case *replication.TransactionPayloadEvent:
		for _, inner := range ev.Events {
			r.event(inner)
		}
		r.open = false
	case *replication.XIDEvent:
		r.open = false
	case *replication.QueryEvent:
		if q := string(ev.Query); q != "BEGIN" && !strings.HasPrefix(q, "SAVEPOINT") && !strings.HasPrefix(q, "ROLLBACK TO") {
			r.open = false
		}
	case *replication.RowsEvent:
		if string(ev.Table.Table) != "ledger" || len(r.commits) == 0 || len(ev.Rows) == 0 {
			return
		}
		last := &r.commits[len(r.commits)-1]
		switch id := ev.Rows[0][0].(type) {
		case int64:
			last.Txn = uint64(id)
		case uint64:
			last.Txn = id
		}
	}
}
