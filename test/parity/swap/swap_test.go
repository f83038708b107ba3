package swap

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

var (
	rounds  = flag.Int("rounds", 3, "how often Debezium is stopped, of each kind")
	mariadb = flag.String("mariadb", "", "folder with the jars of Debezium's connector for MariaDB and of its driver")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is written, and of when Debezium is stopped")
)

// TestSwap: Debezium is stopped in good order at random in a stream of transactions, its
// offset imported, and every row is there once, in order.
func TestSwap(t *testing.T) {
	kafka := servers.KafkaForTest(t)
	binary, err := harness.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", *seed)
	for i, kind := range Kinds(*mariadb) {
		t.Run(kind.Name, func(t *testing.T) {
			s := start(t, kind, kafka, binary, fmt.Sprint("connect", i))
			for round := range *rounds {
				s.round(t, 100*i+round+1)
			}
			t.Logf("%d transactions with %d outbox rows, %d in the largest; "+
				"Debezium stopped inside of a transaction %d times, at the end of its rows %d times",
				s.writer.transactions, s.writer.rows, s.writer.largest, s.inside, s.behind)
		})
	}
}

// swapper is Debezium and this program beside one database.
type swapper struct {
	kind   Kind
	kafka  *servers.Kafka
	db     *servers.MySQL
	worker *servers.Connect
	binary string
	url    string // of this program
	writer *writer
	random *rand.Rand

	inside, behind int
}

func start(t *testing.T, kind Kind, kafka *servers.Kafka, binary, name string) *swapper {
	t.Helper()
	s := &swapper{kind: kind, kafka: kafka, binary: binary, random: rand.New(rand.NewPCG(*seed, 1))}
	var err error
	if s.db, err = kind.Start(t.Context(), servers.Options{Own: true, Args: kind.Args, Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	err = s.db.CreateCDCUser(t.Context())
	if err == nil {
		err = s.db.Exec(t.Context(), append(Schema, "GRANT RELOAD, SHOW DATABASES, LOCK TABLES ON *.* TO "+
			""+servers.CDCUser+"@'%'")...)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.writer = &writer{db: s.db, random: s.random}
	properties := []string{
		"key.converter=org.apache.kafka.connect.storage.StringConverter",
		"value.converter=org.apache.kafka.connect.storage.StringConverter",
	}
	if kind.ExactlyOnce {
		properties = append(properties, "exactly.once.source.support=enabled")
	}
	options := servers.ConnectOptions{
		Name: name, Kafka: kafka.Addr(), Distributed: true, Properties: properties, Libs: kind.Libs, Log: t.Output(),
	}
	if s.worker, err = servers.StartConnect(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(s.worker.LogPath())
			_ = os.WriteFile(filepath.Join(os.TempDir(), "swap-"+name+".log"), log, 0o644)
		}
		_ = s.worker.Close()
	})
	s.url = ours(t, kafka, binary)
	return s
}

// ours runs this program without a connector, and returns its URL.
func ours(t *testing.T, kafka *servers.Kafka, binary string) string {
	t.Helper()
	admin, err := launch(t, kafka, binary, nil).Admin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + admin
}

// launch runs this program with a worker's file, which has more lines, and connectors' files.
func launch(t *testing.T, kafka *servers.Kafka, binary string, lines []string, files ...string) *harness.Process {
	t.Helper()
	dir := t.TempDir()
	worker := filepath.Join(dir, "worker.properties")
	lines = append([]string{"bootstrap.servers=" + kafka.Addr(), "listeners=http://127.0.0.1:0",
		"exactly.once.source.support=enabled"}, lines...)
	if err := os.WriteFile(worker, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"run", "--worker", worker, "--data-dir", filepath.Join(dir, "data")}, files...)
	p, err := harness.Start(binary, args, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Terminate(ctx); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			log, _ := p.Log()
			t.Logf("%s", log)
		}
	})
	return p
}

func (s *swapper) round(t *testing.T, number int) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Minute, fmt.Errorf("round %d takes too long", number))
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name, config := s.kind.connector(s.db, s.kafka, number)
	there, here := s.worker.URL()+"/connectors/"+name, s.url+"/connectors/"+name
	must(rest(ctx, "PUT", there+"/config", config, nil, 201))
	must(until(ctx, "Debezium to stream", func() (bool, error) { return streams(s.worker, number) }))

	first, writing := s.writer.rows, make(chan error, 1)
	load, enough := context.WithCancel(ctx)
	defer enough()
	pause := []time.Duration{10 * time.Millisecond, 500 * time.Millisecond}[number%2]
	go func() { writing <- s.writer.write(load, pause) }()
	time.Sleep(time.Duration(500+s.random.IntN(2500)) * time.Millisecond)
	must(rest(ctx, "PUT", there+"/stop", nil, nil, 204))
	must(until(ctx, "Debezium to stop", func() (bool, error) {
		var status struct {
			Connector struct{ State string }
			Tasks     []struct{ State string }
		}
		err := rest(ctx, "GET", there+"/status", nil, &status, 200)
		return status.Connector.State == "STOPPED" && len(status.Tasks) == 0, err
	}))
	published := s.count(ctx, t, name)

	must(rest(ctx, "POST", s.url+"/connectors", map[string]any{"name": name, "config": config,
		"initial_state": "STOPPED"}, nil, 201))
	notes := s.imports(ctx, t, name)
	must(rest(ctx, "PUT", here+"/resume", nil, nil, 202))
	time.Sleep(300 * time.Millisecond)
	enough()
	must(<-writing)
	must(until(ctx, "all rows", func() (bool, error) { return s.count(ctx, t, name) >= s.writer.rows-first, nil }))
	s.check(ctx, t, name, first)
	must(rest(ctx, "DELETE", here, nil, nil, 204))
	must(rest(ctx, "DELETE", there, nil, nil, 204))
	t.Logf("round %d: %d rows by Debezium, %d in all; %s", number, published, s.writer.rows-first, notes)
}

// imports runs the verb, first without effect.
func (s *swapper) imports(ctx context.Context, t *testing.T, name string) (notes string) {
	t.Helper()
	args := []string{"offset", "import", name, "--from-connect", s.worker.URL(), "--server", s.url, "--reason", "test"}
	for _, more := range [][]string{{"--dry-run"}, nil} {
		out, err := exec.CommandContext(ctx, s.binary, append(args, more...)...).CombinedOutput()
		if err != nil {
			var stored any
			_ = rest(ctx, "GET", s.worker.URL()+"/connectors/"+name+"/offsets", nil, &stored, 200)
			t.Fatalf("%v: %s; the offset is %v", err, out, stored)
		}
		notes = strings.TrimSpace(string(out))
	}
	switch {
	case strings.Contains(notes, "stopped inside of transaction"):
		s.inside++
	case strings.Contains(notes, "outbox rows are published"):
		s.behind++
	}
	return notes
}

func (s *swapper) count(ctx context.Context, t *testing.T, name string) int {
	t.Helper()
	return len(s.read(ctx, t, name))
}

func (s *swapper) read(ctx context.Context, t *testing.T, name string) []kafkatest.Record {
	t.Helper()
	reader := harness.Reader([]string{s.kafka.Addr()})
	ends, err := reader.Ends(ctx, kafkatest.Only(name+".order"))
	if err != nil || len(ends) == 0 {
		return nil // nothing has been sent yet
	}
	records, err := reader.Read(ctx, name+".order", true)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// check compares what a read_committed consumer gets with the rows from first on.
func (s *swapper) check(ctx context.Context, t *testing.T, name string, first int) {
	t.Helper()
	time.Sleep(500 * time.Millisecond) // for what comes twice
	seen, last := map[string]int{}, map[int32]string{}
	for _, r := range s.read(ctx, t, name) {
		id := ""
		for _, h := range r.Headers {
			if h.Key == "id" {
				id = string(h.Value)
			}
		}
		seen[id]++
		if id <= last[r.Partition] {
			t.Errorf("%s comes after %s in partition %d", id, last[r.Partition], r.Partition)
		}
		last[r.Partition] = id
	}
	lost, twice := []string{}, []string{}
	for n := first + 1; n <= s.writer.rows; n++ {
		switch seen[id(n)] {
		case 0:
			lost = append(lost, id(n))
		case 1:
		default:
			twice = append(twice, id(n))
		}
	}
	if len(lost)+len(twice) > 0 || len(seen) != s.writer.rows-first {
		t.Errorf("%s: of %d rows %d are lost (%.200v) and %d came twice (%.200v); %d ids were seen",
			name, s.writer.rows-first, len(lost), lost, len(twice), twice, len(seen))
	}
}

// TestRun: with the worker's own file and the connector's, this program waits while Debezium
// runs, begins where it has stopped, and begins anew where it has never been.
func TestRun(t *testing.T) {
	kafka := servers.KafkaForTest(t)
	binary, err := harness.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Kinds("")[0], kafka, binary, "connect-run")
	const round = 900
	name, config := s.kind.connector(s.db, kafka, round)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	there := s.worker.URL() + "/connectors/" + name
	must(rest(ctx, "PUT", there+"/config", config, nil, 201))
	must(until(ctx, "Debezium to stream", func() (bool, error) { return streams(s.worker, round) }))
	load, enough := context.WithCancel(ctx)
	defer enough()
	writing := make(chan error, 1)
	go func() { writing <- s.writer.write(load, 100*time.Millisecond) }()

	p := s.run(t, config)
	waits := func(c harness.ConnectorStatus) bool {
		return c.LastError != nil &&
			c.LastError.Code == "debezium_offset_found"
	}
	_, err = p.Await(ctx, "the connector to wait for Debezium", waits)
	must(err)
	time.Sleep(time.Second)
	must(rest(ctx, "PUT", there+"/stop", nil, nil, 204))
	_, err = p.Await(ctx, "the connector to publish", func(c harness.ConnectorStatus) bool { return c.Published > 0 })
	must(err)
	enough()
	must(<-writing)
	must(until(ctx, "all rows", func() (bool, error) { return s.count(ctx, t, name) >= s.writer.rows, nil }))
	s.check(ctx, t, name, 0)

	// Where Debezium has never been.
	_, config = s.kind.connector(s.db, kafka, round+1)
	p = s.run(t, config)
	_, err = p.Await(ctx, "the connector to begin",
		func(c harness.ConnectorStatus) bool { return c.State == "running" && c.Position.GTIDSet != "" })
	must(err)
}

// run starts this program with the files of the worker and of a connector.
func (s *swapper) run(t *testing.T, config map[string]string) *harness.Process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "connector.json")
	text, err := json.Marshal(map[string]any{"name": config["name"], "config": config})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var topics []string
	for _, store := range []string{"offset", "status", "config"} {
		topics = append(topics, store+".storage.topic=connect-run-"+store)
	}
	return launch(t, s.kafka, s.binary, topics, file)
}
