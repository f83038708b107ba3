package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/workload"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const (
	partitions = 6
	database1  = "shop"
	// silence is how long the connector may publish nothing while rows are missing,
	// before the scenario stops waiting and says what is missing.
	silence = 45 * time.Second
	// termination is how long a SIGTERM may take. The default of the product's own
	// limit is half of it.
	termination = 60 * time.Second
)

// scaled is n, or less of it on a machine where BINLOG_OUTBOX_E2E_SCALE, between
// 0 and 1, asks for a short run. The numbers that are promised need 1.
func scaled(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("BINLOG_OUTBOX_E2E_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 || scale > 1 {
		t.Fatalf("BINLOG_OUTBOX_E2E_SCALE=%q: want a number above 0 and up to 1", text)
	}
	return max(1, int(float64(n)*scale))
}

// seed of all that is random in a scenario; BINLOG_OUTBOX_E2E_SEED repeats one.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("BINLOG_OUTBOX_E2E_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("BINLOG_OUTBOX_E2E_SEED=%q: %v", text, err)
		}
	}
	t.Logf("seed %d", n)
	return n
}

// play says what a stage is made of.
type play struct {
	server *servers.MySQL
	// positions and delivery are the connector's settings of that name.
	positions string // default auto
	delivery  string // default at_least_once
	// user and password are the connector's account, a fitting one by default.
	user, password string
	// rowMetadata is binlog_row_metadata: MINIMAL (default) or FULL.
	rowMetadata string
	// maxMessage is the limit of producer and topic in bytes; 0: Kafka's defaults.
	maxMessage int
	// topicLimit is the limit of the topics alone; 0: Kafka's default.
	topicLimit int
	// errors is the connector's section of that name; stop by default.
	errors string
}

// stage is one scenario's shop, topic and connector.
type stage struct {
	t      *testing.T
	play   play
	random *rand.Rand
	shop   *workload.Shop
	topic  string
	config string // path of the configuration
	log    string // path of the connector's log
	data   string // its data directory
	tail   *harness.Tail
	proc   *harness.Process
	peak   int64
}

// newStage prepares a scenario: a new shop, an empty binlog, a topic and a data
// directory of its own. The connector is not started.
func newStage(t *testing.T, p play) *stage {
	t.Helper()
	kafka := theLab.broker(t)
	n := seed(t)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	dir := filepath.Join(theLab.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, play: p, random: rand.New(rand.NewPCG(n, 0)), topic: "outbox.event." + name,
		config: filepath.Join(dir, "node.yaml"), log: filepath.Join(dir, "connector.log"), data: filepath.Join(dir, "data"),
	}
	shop, err := workload.Create(t.Context(), p.server, workload.Options{
		Database: database1, Aggregate: name, Partitions: partitions, Keys: 1000, Seed: n,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.shop = shop
	s.sql("SET GLOBAL binlog_row_metadata = "+or(p.rowMetadata, "MINIMAL"), resetBinlog(p.server))
	text := s.yaml(kafka.Addr(), name)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.tail, err = harness.StartTail(t.Context(), []string{kafka.Addr()}, s.topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// resetBinlog makes the binlog empty, so that source.start earliest is the
// beginning of the scenario.
func resetBinlog(server *servers.MySQL) string {
	if server.Flavor() == "mariadb" {
		return "RESET MASTER"
	}
	return "RESET BINARY LOGS AND GTIDS"
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func (s *stage) yaml(broker, name string) string {
	configs, producer := "", ""
	if n := s.play.maxMessage; n > 0 {
		configs, producer = fmt.Sprintf(", configs: {max.message.bytes: '%d'}", n), fmt.Sprintf("max_message_bytes: %d", n)
	}
	if n := s.play.topicLimit; n > 0 {
		configs = fmt.Sprintf(", configs: {max.message.bytes: '%d'}", n)
	}
	return fmt.Sprintf(`node: {id: e2e, data_dir: %q}
admin: {listen: "127.0.0.1:0"}
log: {format: json}
connectors:
  - name: %s
    source: {host: %s, port: %d, user: %s, password: %s, table: %s.outbox, start: earliest, positions: %s}
    outbox: {additional: ["type:header:eventType"]}
    errors: %s
    kafka:
      brokers: [%q]
      delivery: %s
      create_topics: {partitions: %d, replication_factor: 1%s}
      %s
`, s.data, name, s.play.server.Host(), s.play.server.Port(),
		or(s.play.user, servers.CDCUser), or(s.play.password, servers.CDCPassword), database1,
		or(s.play.positions, "auto"), or(s.play.errors, "{}"), broker, s.delivery(), partitions, configs, producer)
}

func (s *stage) delivery() string {
	return or(s.play.delivery, or(os.Getenv("BINLOG_OUTBOX_E2E_DELIVERY"), "at_least_once"))
}

// validators are the promises for this stage when bound is what its restarts may
// repeat.
func (s *stage) validators(bound history.Bound) []history.Validator {
	if s.delivery() == "exactly_once" {
		return history.ExactlyOnce
	}
	return history.AtLeastOnce(bound)
}

// sql runs statements on the shop's server.
func (s *stage) sql(statements ...string) {
	s.t.Helper()
	if err := s.shop.Exec(s.t.Context(), statements...); err != nil {
		s.t.Fatal(err)
	}
}

// start starts the connector, again on the same data directory after the first time.
func (s *stage) start() {
	s.t.Helper()
	proc, err := harness.Start(theLab.binary(s.t), []string{"run", "--config", s.config}, s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	s.proc = proc
}

// kill ends the connector as kill -9 does.
func (s *stage) kill() {
	s.t.Helper()
	s.mustRun()
	s.notePeak()
	if err := s.proc.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// terminate ends the connector with SIGTERM.
func (s *stage) terminate() {
	s.t.Helper()
	s.mustRun()
	s.notePeak()
	ctx, cancel := context.WithTimeout(s.t.Context(), termination)
	defer cancel()
	if _, err := s.proc.Admin(ctx); err != nil { // a SIGTERM before it listens ends it as kill -9 does
		s.t.Fatal(err)
	}
	if err := s.proc.Terminate(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// mustRun fails the test when the connector has ended by itself: no scenario
// wants that.
func (s *stage) mustRun() {
	s.t.Helper()
	select {
	case <-s.proc.Done():
		s.t.Fatal("the connector has ended by itself")
	default:
	}
}

func (s *stage) notePeak() {
	if rss, err := s.proc.PeakRSS(); err == nil {
		s.peak = max(s.peak, rss)
	}
}

// close ends what the scenario started and shows the end of the log if it failed.
func (s *stage) close() {
	s.tail.Stop()
	if s.proc == nil {
		return
	}
	if err := s.proc.Kill(); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("end of %s:\n%s", s.log, lastLines(s.log, 40))
		for _, log := range []string{s.play.server.LogPath(), theLab.kafka.LogPath()} {
			s.t.Logf("end of %s:\n%s", log, lastLines(log, 20))
		}
	}
}

func lastLines(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// written is what the server has of the shop's transactions, and how many outbox
// rows that are.
func (s *stage) written() (ledger []history.LedgerRow, rows int) {
	s.t.Helper()
	ledger, err := s.shop.Settle(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := history.New(partitions, s.shop.Journal(), ledger, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return ledger, h.Counts().Rows
}

// finish waits until all is read, stops the connector, reads the topic once more
// from its start, and checks the promises.
func (s *stage) finish(validators []history.Validator) *history.History {
	s.t.Helper()
	ledger, rows := s.written()
	from := time.Now()
	if err := s.tail.Wait(s.t.Context(), rows, silence); err != nil {
		s.t.Errorf("waiting for the rows: %v", err)
		s.status()
	}
	s.t.Logf("all read %v after the last was written", time.Since(from).Round(time.Millisecond))
	s.terminate()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	seen, err := harness.ReadAll(ctx, []string{theLab.kafka.Addr()}, s.topic)
	if err != nil {
		s.t.Fatal(err)
	}
	h, err := history.New(partitions, s.shop.Journal(), ledger, seen)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%v; at most %d MB resident", h.Counts(), s.peak>>20)
	if err := history.Validate(h, validators); err != nil {
		s.t.Error(err)
	}
	return h
}

// status logs what the connector says of itself.
func (s *stage) status() {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	if c, err := s.proc.Connector(ctx); err != nil {
		s.t.Log(err)
	} else {
		s.t.Logf("status: %+v, last error: %+v", c, c.LastError)
	}
}

// await waits until the connector's status is as wanted.
func (s *stage) await(what string, within time.Duration,
	ok func(harness.ConnectorStatus) bool) harness.ConnectorStatus {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	status, err := s.proc.Await(ctx, what, ok)
	if err != nil {
		s.t.Fatal(err)
	}
	return status
}

// pause sleeps for a random time between the two.
func (s *stage) pause(least, most time.Duration) {
	time.Sleep(least + time.Duration(s.random.Int64N(int64(most-least))))
}
