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
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/parity/restapi"
)

const firstTransactions = 100

// startParityNode runs a node with a server and a broker, and a runner of steps on it.
func startParityNode(t *testing.T) *restapi.Runner {
	t.Helper()
	table := canaltest.Outbox()
	table.Database = "restapi"
	kafka, mysql := kafkatest.Start(t), canaltest.StartTable(t, table, firstTransactions)
	kafka.Topic("outbox.event.order", 1, nil)
	cfg, err := config.Build(config.YAML("test",
		[]byte("node: {id: n1, data_dir: "+t.TempDir()+"}\nadmin: {listen: \"127.0.0.1:0\"}\n")))
	if err != nil {
		t.Fatal(err)
	}
	n := runNode(t, cfg, Options{Compiler: &Compiler{Worker: workerFile(kafka.Brokers()[0],
		"binlog.outbox.kafka.delivery=at_least_once\n")}})
	eventually(t, "the node leads", n.leads)
	at := position.Position{Flavor: position.MySQL, Server: sid, Set: gtids(t, sid+":1-"+strconv.Itoa(firstTransactions)),
		Seq: 1}
	if err := n.store.SavePosition(t.Context(), "orders", ha.Session{Term: n.store.Status().Term, ID: "before"},
		at); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &restapi.Runner{
		URL: "http://" + n.admin.Addr(), Client: client, Patience: 20 * time.Second,
		Fill: strings.NewReplacer("{host}", "127.0.0.1", "{port}", strconv.Itoa(mysql.Port()), "{user}", canaltest.User,
			"{password}", canaltest.Password, "{dir}", "/tmp"),
		Publish: func(context.Context) error { mysql.Commit(1); return nil },
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
		t.Fatal("the page has no commit positions of the table")
	}
	want := before + begin + restapi.Table() + end + after
	if *writeConnectPage {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != want {
		t.Error("docs/connect-api.md is stale; run: go test ./node -run TestConnectAPIPageIsCurrent -write-connect")
	}
}
