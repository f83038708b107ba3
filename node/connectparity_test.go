package node

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/parity/restapi"
)

// outboxServer plays a MySQL server whose outbox gets rows when it is told so.
type outboxServer struct {
	canaltest.Server

	sid  uuid.UUID
	mu   sync.Mutex
	last uint64        // transaction
	more chan struct{} // closed and replaced when last moves on
	done chan struct{}
}

const firstTransactions = 100

func startOutboxServer(t *testing.T) *outboxServer {
	t.Helper()
	s := &outboxServer{sid: uuid.MustParse("3e11fa47-71ca-11e1-9e33-c80aa9429562"), last: firstTransactions, more: make(chan struct{}), done: make(chan struct{})}
	// It says from the beginning that it has what is still to come.
	s.Server = canaltest.Server{UUID: s.sid.String(), GTIDMode: "ON", Executed: s.sid.String() + ":1-9999", LogBin: "ON", Binlogs: []string{"binlog.000001"}, Serve: s.serve}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(s.done)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// publish commits a transaction with an outbox row.
func (s *outboxServer) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	close(s.more)
	s.more = make(chan struct{})
}

func (s *outboxServer) serve(d canaltest.Dump, to *canaltest.Sender) error {
	at := uint64(9999) // whoever begins at the end
	if _, end, ok := strings.Cut(d.Set, ":1-"); ok {
		n, err := strconv.ParseUint(end, 10, 64)
		if err != nil {
			return err
		}
		at = n
	}
	b := canaltest.NewBinlog(position.MySQL, "binlog.000001", 4)
	outbox := canaltest.Outbox()
	outbox.Database = "restapi"
	for {
		s.mu.Lock()
		last, more := s.last, s.more
		s.mu.Unlock()
		for ; at < last; at++ {
			b.Transaction(position.GTID{SID: s.sid, Seq: at + 1}, func() {
				b.Map(outbox)
				b.Insert(outbox, []any{int64(at), "order", "7", "created", "{}"})
			})
		}
		for _, e := range b.Events {
			if err := to.Event(e); err != nil {
				return nil // the reader is gone
			}
		}
		b.Events = nil
		select {
		case <-more:
		case <-s.done:
			return nil
		}
	}
}

// startParityNode runs a node with a server and a broker, and a runner of steps on it.
func startParityNode(t *testing.T) *restapi.Runner {
	t.Helper()
	kafka, mysql := kafkatest.Start(t), startOutboxServer(t)
	kafka.Topic("outbox.event.order", 1, nil)
	cfg, err := config.Build(config.YAML("test", []byte("node: {id: n1, data_dir: "+t.TempDir()+"}\nadmin: {listen: \"127.0.0.1:0\"}\n")))
	if err != nil {
		t.Fatal(err)
	}
	n := runNode(t, cfg, Options{Compiler: &Compiler{Worker: workerFile(kafka.Brokers()[0], "binlog.outbox.kafka.delivery=at_least_once\n")}})
	eventually(t, "the node leads", n.leads)
	set, err := position.ParseSet(position.MySQL, mysql.sid.String()+":1-"+strconv.Itoa(firstTransactions))
	if err != nil {
		t.Fatal(err)
	}
	at := position.Position{Flavor: position.MySQL, Server: mysql.sid.String(), Set: set, Seq: 1}
	if err := n.store.SavePosition(t.Context(), "orders", ha.Run{Term: n.store.Status().Term, ID: "before"}, at); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &restapi.Runner{
		URL: "http://" + n.admin.Addr(), Client: client, Patience: 20 * time.Second,
		Fill:    strings.NewReplacer("{host}", "127.0.0.1", "{port}", strconv.Itoa(mysql.Port()), "{user}", canaltest.User, "{password}", canaltest.Password, "{dir}", "/tmp"),
		Publish: func(context.Context) error { mysql.publish(); return nil },
	}
}

// Topics are told across a change of the connector, and forgotten with it.
func TestConnectAPIKeepsTopics(t *testing.T) {
	r := startParityNode(t)
	steps := restapi.Steps()
	do := func(name string, change func(*restapi.Step)) {
		t.Helper()
		i := slices.IndexFunc(steps, func(s restapi.Step) bool { return s.Name == name })
		s := steps[i]
		if change != nil {
			change(&s)
		}
		if _, err := r.Do(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
	}
	do("create", nil)
	do("topics", nil)
	do("put config", nil)
	do("topics", func(s *restapi.Step) { s.Publish = false })
	do("delete", nil)
	do("create", nil)
	do("topics after the reset", nil)
}

const recordedAnswers = "../test/parity/restapi/testdata/connect.json"

// Every answer has the status and the keys of the one that a real worker gave, but
// for what is listed with its reason.
func TestConnectAPIAsConnectDoes(t *testing.T) {
	recorded, err := restapi.Load(filepath.FromSlash(recordedAnswers))
	if err != nil {
		t.Fatal(err)
	}
	r := startParityNode(t)
	differences := restapi.Differences()
	for _, s := range restapi.Steps() {
		got, err := r.Do(t.Context(), &s)
		if err != nil {
			t.Error(err)
			continue
		}
		want, ok := recorded.Answers[s.Name]
		if !ok {
			t.Errorf("%s is not recorded; run test/parity/restapi/record", s.Name)
			continue
		}
		listed := differences[s.Name]
		if found := restapi.Compare(&s, want, got); !slices.Equal(found, listed.Found) {
			t.Errorf("%s (%s %s) differs in %q, listed is %q\n%s", s.Name, s.Method, s.Path, found, listed.Found, got.Body)
		}
		delete(differences, s.Name)
	}
	for name := range differences {
		t.Errorf("%s is listed as different and is no step", name)
	}
}

var writeConnectPage = flag.Bool("write-connect", false, "write the table of docs/connect-api.md anew")

// docs/connect-api.md has the table of the comparison.
func TestConnectAPIPageIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "connect-api.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- table -->\n", "<!-- end of the table -->\n"
	before, rest, ok := strings.Cut(string(have), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no marks of the table")
	}
	want := before + begin + restapi.Table() + end + after
	if *writeConnectPage {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != want {
		t.Error("docs/connect-api.md is stale; run: go test ./cmd/binlog-outbox -run TestConnectAPIPageIsCurrent -write-connect")
	}
}
