package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/admin/admintest"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

// scriptedSource is a MySQL with so many transactions of one outbox row each, whose
// ids count from 1.
func scriptedSource(t *testing.T, transactions int) *canaltest.Server {
	t.Helper()
	b := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4)
	head := slices.Clone(b.Events)
	var all [][][]byte
	id := func(n int) position.GTID { return position.GTID{SID: uuid.MustParse(sid), Seq: uint64(n)} }
	for n := 1; n <= transactions; n++ {
		from := len(b.Events)
		b.GTID(id(n), uint64(1_700_000_000_000_000+n), 0)
		b.Begin()
		b.Map(canaltest.Outbox())
		b.Insert(canaltest.Outbox(), []any{int64(n), "order", "a", "Created", "{}"})
		b.XID()
		all = append(all, slices.Clone(b.Events[from:]))
	}
	s := &canaltest.Server{
		UUID: sid, GTIDMode: "ON", Executed: fmt.Sprintf("%s:1-%d", sid, transactions), LogBin: "ON", Binlogs: []string{"binlog.000001"}, Tables: []string{"outbox"},
	}
	s.Serve = func(d canaltest.Dump, to *canaltest.Sender) error {
		known, err := position.ParseSet(position.MySQL, d.Set)
		if err != nil {
			return err
		}
		send := slices.Clone(head)
		for n, events := range all {
			if !known.Has(id(n + 1)) {
				send = append(send, events...)
			}
		}
		for _, e := range send {
			if err := to.Event(slices.Clone(e)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func scriptedConnector(source *canaltest.Server, broker, more string) string {
	return fmt.Sprintf(`
connectors:
  - name: orders
    source: {host: 127.0.0.1, port: %d, user: %s, password: %s, table_patterns: ["shop.outbox"], start: earliest}
    outbox: {route_by: aggregatetype}
    kafka: {brokers: [%q]}
    retry: {initial: 20ms, max: 100ms}
%s`, source.Port(), canaltest.User, canaltest.Password, broker, more)
}

// oneEvent asks a node for an event in the connector orders.
func (n *aNode) oneEvent(t *testing.T, id string) admin.ConnectorEvent {
	t.Helper()
	e, err := (&control{n.daemon}).Event(t.Context(), id, "orders")
	if err != nil || len(e.Connectors) != 1 || e.ID != id {
		t.Fatalf("%+v, %v", e, err)
	}
	return e.Connectors[0]
}

// TestEventOfALiveConnector: the answer has the transaction and the place that a
// consumer finds; a node that has just begun does not know it, and a search of the
// binlog does; then one that is not there.
func TestEventOfALiveConnector(t *testing.T) {
	k := kafkatest.Start(t)
	topic := k.Topic("outbox.event.order", 3, nil)
	source := scriptedSource(t, 20)
	dir := t.TempDir()
	yaml := scriptedConnector(source, k.Brokers()[0], "")
	n := startNode(t, "n1", dir, yaml)
	eventually(t, "all rows", func() bool { return len(k.Records(topic)) == 20 })
	eventually(t, "the answer", func() bool { return n.oneEvent(t, "20").Where == admin.EventPublished })
	for _, r := range k.Records(topic) {
		id := ""
		for _, h := range r.Headers {
			if h.Key == "id" {
				id = string(h.Value)
			}
		}
		e := n.oneEvent(t, id)
		if e.Where != admin.EventPublished || len(e.Published) != 1 || e.Written.GTID != sid+":"+id || e.Written.File != "binlog.000001" || e.Written.Pos == 0 || e.Written.CommittedAt == nil {
			t.Fatalf("event %s: %+v", id, e)
		}
		p := e.Published[0]
		if p.Topic != topic || p.Partition != r.Partition || p.Offset == nil || *p.Offset != r.Offset || p.At.IsZero() {
			t.Errorf("event %s is said to be at %+v, it is at %d/%d", id, p, r.Partition, r.Offset)
		}
	}
	url := "http://" + n.admin.Addr()
	if code, out, errs := (command{}).run(t, "trace", "7", "--server", url); code != exitOK || !strings.Contains(out, "published") || !strings.Contains(out, sid+":7") || !strings.Contains(out, topic) {
		t.Errorf("trace: %d\n%s%s", code, out, errs)
	}
	if code, out, _ := (command{}).run(t, "trace", "77", "--server", url); code != exitNotFound || !strings.Contains(out, "not seen") || !strings.Contains(out, "20 events") {
		t.Errorf("trace of what is not there: %d\n%s", code, out)
	}
	n.stop()

	n = startNode(t, "n1", dir, yaml)
	eventually(t, "that it streams", n.is("orders", "running"))
	eventually(t, "that it leads", func() bool { return n.node.Status().Role == "leader" })
	url = "http://" + n.admin.Addr()
	if e := n.oneEvent(t, "7"); e.Where != admin.EventNotSeen || e.Known.Off {
		t.Errorf("a new process knows of %+v", e)
	}
	if code, out, errs := (command{}).run(t, "trace", "7", "--search", "--server", url); code != exitOK || !strings.Contains(out, "passed") || !strings.Contains(out, sid+":7 at binlog.000001:") {
		t.Errorf("search: %d\n%s%s", code, out, errs)
	}
	if code, out, errs := (command{}).run(t, "trace", "77", "--search", "--server", url); code != exitNotFound || !strings.Contains(out, "not_found") {
		t.Errorf("search of what is not there: %d\n%s%s", code, out, errs)
	}
	checkEventContract(t, url)
}

// checkEventContract holds the answers about events against docs/openapi.yaml.
func checkEventContract(t *testing.T, url string) {
	t.Helper()
	contract, err := admintest.Load("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const why = `{"reason":"test"}`
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/v1/events/7", ""}, {"POST", "/v1/events/7/search", why}, {"GET", "/v1/events/7", ""}, {"DELETE", "/v1/events/7/search", why}, {"DELETE", "/v1/events/8/search", why},
	} {
		askByContract(t, contract, one.method, url+one.path, one.body)
	}
}

// TestEventThatWaits: while Kafka is away a search finds the event, says what is
// before it, and why the connector does not go on; a decision about its row counts.
func TestEventThatWaits(t *testing.T) {
	source := scriptedSource(t, 20)
	n := startNode(t, "n1", t.TempDir(), scriptedConnector(source, "127.0.0.1:1", ""))
	eventually(t, "an error", func() bool { return n.theRunner("orders").worker.Status().LastError != nil })
	c := &control{n.daemon}
	run, _ := n.node.NewRun("orders", n.node.Status().Term)
	if err := n.node.SavePosition(t.Context(), "orders", run, position.Position{Flavor: position.MySQL, Set: gtids(t, sid+":1-2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(t.Context(), "7", "", ann); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the search", func() bool { return n.oneEvent(t, "7").Search.State == searchFound })
	e := n.oneEvent(t, "7")
	if e.Where != admin.EventWaiting || e.Behind == nil || *e.Behind != 4 || e.Written.GTID != sid+":7" || e.Error == "" {
		t.Errorf("%+v, want one that waits behind 4", e)
	}
	choice := admin.AsideChoice{Transaction: sid + ":7", Row: 1, Action: "skip"}
	if _, err := c.SetAside(t.Context(), "orders", choice, ann); err != nil {
		t.Fatal(err)
	}
	if e := n.oneEvent(t, "7"); e.Where != admin.EventSetAside || e.SetAside == nil || e.SetAside.Row != 1 || e.SetAside.Message != "test" {
		t.Errorf("after a decision: %+v", e)
	}
	if e := n.oneEvent(t, "8"); e.Search != nil || e.Where != admin.EventNotSeen {
		t.Errorf("another event has the search, too: %+v", e)
	}
}

// TestOneSearchAtATime: a second one is refused, and one that is ended says so.
func TestOneSearchAtATime(t *testing.T) {
	source := scriptedSource(t, 2000)
	n := startNode(t, "n1", t.TempDir(), scriptedConnector(source, "127.0.0.1:1", "    trace: {scan_rate: 1kB}\n"))
	c := &control{n.daemon}
	eventually(t, "a leader", func() bool { return n.node.Status().Role == "leader" })
	if _, err := c.Search(t.Context(), "1999", "orders", ann); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search(t.Context(), "1", "orders", ann); codeOf(err) != admin.CodeSearching {
		t.Errorf("a second search: %v", err)
	}
	if _, err := c.EndSearch(t.Context(), "1", ann); codeOf(err) != admin.CodeNoSearch {
		t.Errorf("the end of another search: %v", err)
	}
	if _, err := c.EndSearch(t.Context(), "1999", ann); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end", func() bool { return n.oneEvent(t, "1999").Search.State == searchCancelled })
	if _, err := c.Search(t.Context(), "1", "none", ann); codeOf(err) != admin.CodeConnectorNotFound {
		t.Errorf("a search in an unknown connector: %v", err)
	}
	if _, err := c.Search(t.Context(), "1998", "orders", ann); err != nil {
		t.Fatal(err)
	}
	n.stop() // and does not wait for it
}

// TestFollowersAskTheLeader about events, searches and their ends.
func TestFollowersAskTheLeader(t *testing.T) {
	source := scriptedSource(t, 20)
	nodes := startCluster(t, scriptedConnector(source, "127.0.0.1:1", ""))
	leader, followers := leaderAmong(t, nodes)
	for _, f := range followers {
		eventually(t, "that all know the leader", func() bool { return f.node.Status().LeaderID == leader.id && f.node.Status().Ready })
	}
	for _, f := range followers {
		c := &control{f.daemon}
		e, err := c.Event(t.Context(), "7", "")
		if err != nil || e.Node != leader.id || len(e.Connectors) != 1 {
			t.Errorf("%s answers %+v, %v", f.id, e, err)
		}
		if _, err := c.Event(t.Context(), "7", "none"); codeOf(err) != admin.CodeConnectorNotFound {
			t.Errorf("an unknown connector: %v", err)
		}
	}
	if _, err := (&control{followers[0].daemon}).Search(t.Context(), "7", "orders", ann); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other follower's view of the search", func() bool {
		s := followers[1].oneEvent(t, "7").Search
		return s != nil && s.State == searchFound
	})
}

// TestPacedReads: no more than the rate, whatever is asked for, and a pause ends with
// the connection.
func TestPacedReads(t *testing.T) {
	here, there := net.Pipe()
	const rate = 10_000
	c := &pacedConn{Conn: here, rate: rate, closed: make(chan struct{})}
	go func() { _, _ = there.Write(bytes.Repeat([]byte("x"), 1<<20)) }()
	began := time.Now()
	if _, err := io.ReadFull(c, make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("3,000 bytes at 10,000 a second took %v", took)
	}
	c.free = time.Now().Add(time.Hour)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = c.Read(make([]byte, 1)) }()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
}
