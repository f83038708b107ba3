package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/admin/admintest"
	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
)

func scriptedConnector(source *canaltest.OutboxServer, broker, more string) string {
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
	var e admin.Event
	if code, text := n.call(t, "GET", "/v1/events/"+id+"?connector=orders", "", &e); len(e.Connectors) != 1 || e.ID != id {
		t.Fatalf("%d %s", code, text)
	}
	return e.Connectors[0]
}

// TestEventOfALiveConnector: the answer has the transaction and the place that a
// consumer finds; a node that has just begun does not know it, and a search of the
// binlog does; then one that is not there.
func TestEventOfALiveConnector(t *testing.T) {
	k := kafkatest.Start(t)
	topic := k.Topic("outbox.event.order", 3, nil)
	source := canaltest.StartOutbox(t, 20)
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
		if e.Where != admin.EventPublished || len(e.Published) != 1 || e.Written.GTID != sid+":"+id ||
			e.Written.File != "binlog.000001" || e.Written.Pos == 0 || e.Written.CommittedAt == nil {
			t.Fatalf("event %s: %+v", id, e)
		}
		p := e.Published[0]
		if p.Topic != topic || p.Partition != r.Partition || p.Offset == nil || *p.Offset != r.Offset || p.At.IsZero() {
			t.Errorf("event %s is said to be at %+v, it is at %d/%d", id, p, r.Partition, r.Offset)
		}
	}
	n.stop()

	n = startNode(t, "n1", dir, yaml)
	eventually(t, "that it streams", n.is("orders", "running"))
	eventually(t, "that it leads", func() bool { return n.store.Status().Role == "leader" })
	if e := n.oneEvent(t, "7"); e.Where != admin.EventNotSeen || e.Known.Off {
		t.Errorf("a new process knows of %+v", e)
	}
	for id, want := range map[string]admin.ConnectorEvent{
		"7":  {Where: admin.EventPassed, Search: &admin.Search{State: admin.SearchFound}},
		"77": {Where: admin.EventNotSeen, Search: &admin.Search{State: admin.SearchNotFound}},
	} {
		if _, err := n.api.Search(id, "orders", ann); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of the search", func() bool { return n.oneEvent(t, id).Search.State == want.Search.State })
		if e := n.oneEvent(t, id); e.Where != want.Where {
			t.Errorf("event %s after a search: %+v", id, e)
		}
	}
	checkEventContract(t, "http://"+n.admin.Addr())
}

// checkEventContract holds the answers about events against docs/openapi.yaml.
func checkEventContract(t *testing.T, url string) {
	t.Helper()
	contract, err := admintest.Load("../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const why = `{"reason":"test"}`
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/v1/events/7", ""}, {"POST", "/v1/events/7/search", why}, {"GET", "/v1/events/7", ""},
		{"DELETE", "/v1/events/7/search", why}, {"DELETE", "/v1/events/8/search", why},
	} {
		contract.Ask(t, one.method, url+one.path, one.body)
	}
}

// TestEventThatWaits: while Kafka is away a search finds the event, says what is
// before it, and why the connector does not go on; a decision about its row counts.
func TestEventThatWaits(t *testing.T) {
	source := canaltest.StartOutbox(t, 20)
	n := startNode(t, "n1", t.TempDir(), scriptedConnector(source, "127.0.0.1:1", ""))
	eventually(t, "an error", func() bool { return n.instance("orders").connector.Status().LastError != nil })
	c := n.api
	run, _ := n.store.NewSession("orders", n.store.Status().Term)
	if err := n.store.SavePosition(t.Context(), "orders", run, position.Position{Flavor: position.MySQL,
		Set: gtids(t, sid+":1-2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search("7", "", ann); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the search", func() bool { return n.oneEvent(t, "7").Search.State == admin.SearchFound })
	e := n.oneEvent(t, "7")
	if e.Where != admin.EventWaiting || e.Behind == nil || *e.Behind != 4 || e.Written.GTID != sid+":7" || e.Error == "" {
		t.Errorf("%+v, want one that waits behind 4", e)
	}
	request := admin.RowRequest{Transaction: sid + ":7", Row: 1, Action: "skip"}
	if _, err := c.DecideRow(t.Context(), "orders", request, ann); err != nil {
		t.Fatal(err)
	}
	if e := n.oneEvent(t, "7"); e.Where != admin.EventUnpublished || e.Unpublished == nil || e.Unpublished.Row != 1 ||
		e.Unpublished.Message != "test" {
		t.Errorf("after a decision: %+v", e)
	}
	if e := n.oneEvent(t, "8"); e.Search != nil || e.Where != admin.EventNotSeen {
		t.Errorf("another event has the search, too: %+v", e)
	}
}

// TestOneSearchAtATime: a second one is refused, and one that is ended says so.
func TestOneSearchAtATime(t *testing.T) {
	source := canaltest.StartOutbox(t, 2000)
	n := startNode(t, "n1", t.TempDir(), scriptedConnector(source, "127.0.0.1:1", "    events: {scan_rate: 1kB}\n"))
	c := n.api
	eventually(t, "a leader", func() bool { return n.store.Status().Role == "leader" })
	if _, err := c.Search("1999", "orders", ann); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Search("1", "orders", ann); codeOf(err) != admin.CodeSearching {
		t.Errorf("a second search: %v", err)
	}
	if _, err := c.EndSearch("1", ann); codeOf(err) != admin.CodeNoSearch {
		t.Errorf("the end of another search: %v", err)
	}
	if _, err := c.EndSearch("1999", ann); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end", func() bool { return n.oneEvent(t, "1999").Search.State == admin.SearchCancelled })
	if _, err := c.Search("1", "none", ann); codeOf(err) != admin.CodeConnectorNotFound {
		t.Errorf("a search in an unknown connector: %v", err)
	}
	if _, err := c.Search("1998", "orders", ann); err != nil {
		t.Fatal(err)
	}
	n.stop() // and does not wait for it
}

// TestASearchThatCannotBegin says why.
func TestASearchThatCannotBegin(t *testing.T) {
	c, r := leading(t)
	r.config.Outbox.RouteRegex = "("
	if _, err := c.Search("1", "orders", ann); err == nil || !strings.Contains(err.Error(), "regex") {
		t.Errorf("it begins: %v", err)
	}
}

// TestFollowersAskTheLeader about events, searches and their ends.
func TestFollowersAskTheLeader(t *testing.T) {
	source := canaltest.StartOutbox(t, 20)
	nodes := startCluster(t, scriptedConnector(source, "127.0.0.1:1", ""))
	leader, followers := leaderAmong(t, nodes)
	for _, f := range followers {
		eventually(t, "that all know the leader", func() bool {
			return f.store.Status().LeaderID == leader.id &&
				f.store.Status().Ready
		})
	}
	for _, f := range followers {
		var e admin.Event
		if code, text := f.call(t, "GET", "/v1/events/7", "", &e); code != 200 || e.Node != leader.id ||
			len(e.Connectors) != 1 {
			t.Errorf("%s answers %d %s", f.id, code, text)
		}
		if text := f.must(t, 404, "GET", "/v1/events/7?connector=none", ""); !strings.Contains(text,
			admin.CodeConnectorNotFound) {
			t.Errorf("an unknown connector: %s", text)
		}
	}
	followers[0].must(t, 202, "POST", "/v1/events/7/search", `{"reason": "why", "connector": "orders"}`)
	eventually(t, "the other follower's view of the search", func() bool {
		s := followers[1].oneEvent(t, "7").Search
		return s != nil && s.State == admin.SearchFound
	})
}

// TestPacedReads: no more than the rate, whatever is asked for, and a pause ends with
// the connection.
func TestPacedReads(t *testing.T) {
	here, there := net.Pipe()
	const rate = 10_000
	c, err := paced(rate, func(context.Context, string, string) (net.Conn, error) {
		return here,
			nil
	})(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = there.Write(bytes.Repeat([]byte("x"), 1<<20)) }()
	began := time.Now()
	if _, err := io.ReadFull(c, make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("3,000 bytes at 10,000 a second took %v", took)
	}
	for range 3600 {
		c.(*pacedConn).limit.ReserveN(time.Now(), rate/10) // the next ones are free in some minutes
	}
	done := make(chan struct{})
	go func() { defer close(done); _, _ = c.Read(make([]byte, 1)) }()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
}
