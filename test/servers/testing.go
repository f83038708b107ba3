package servers

import (
	"context"
	"os"
	"sync"
	"testing"
)

// testLogLines is how much of a server's log a failed test shows.
const testLogLines = 60

// closer is a server as the test helpers see it.
type closer interface {
	LogPath() string
	Close() error
}

// wanted skips a test that wants a server where there are to be none:
// BINLOG_OUTBOX_TEST_SERVERS=none, as make fast has it. All other targets start them.
func wanted(tb testing.TB) {
	tb.Helper()
	if os.Getenv("BINLOG_OUTBOX_TEST_SERVERS") == "none" {
		tb.Skip("it needs a real server")
	}
}

// MySQLForTest starts a MySQL server that lives as long as the test. When the test
// fails, the end of the server's log is in the test's. At most one options is taken.
func MySQLForTest(tb testing.TB, options ...Options) *MySQL {
	tb.Helper()
	return databaseForTest(tb, StartMySQL, options)
}

// MariaDBForTest does the same as MySQLForTest with MariaDB.
func MariaDBForTest(tb testing.TB, options ...Options) *MySQL {
	tb.Helper()
	return databaseForTest(tb, StartMariaDB, options)
}

func databaseForTest(tb testing.TB, start func(context.Context, Options) (*MySQL, error), options []Options) *MySQL {
	tb.Helper()
	wanted(tb)
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.Log == nil {
		o.Log = tb.Output()
	}
	s, err := start(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	closeAfter(tb, s)
	return s
}

// KafkaForTest starts a Kafka broker that lives as long as the test. When the test
// fails, the end of the broker's log is in the test's. At most one options is taken.
func KafkaForTest(tb testing.TB, options ...KafkaOptions) *Kafka {
	tb.Helper()
	wanted(tb)
	k, err := StartKafka(tb.Context(), kafkaTestOptions(tb, options))
	if err != nil {
		tb.Fatal(err)
	}
	closeAfter(tb, k)
	return k
}

// KafkaClusterForTest does the same as KafkaForTest with n brokers.
func KafkaClusterForTest(tb testing.TB, n int, options ...KafkaOptions) *KafkaCluster {
	tb.Helper()
	wanted(tb)
	c, err := StartKafkaCluster(tb.Context(), n, kafkaTestOptions(tb, options))
	if err != nil {
		tb.Fatal(err)
	}
	for _, k := range c.Brokers {
		closeAfter(tb, k)
	}
	return c
}

func kafkaTestOptions(tb testing.TB, options []KafkaOptions) KafkaOptions {
	var o KafkaOptions
	if len(options) > 0 {
		o = options[0]
	}
	if o.Log == nil {
		o.Log = tb.Output()
	}
	return o
}

func closeAfter(tb testing.TB, s closer) {
	tb.Cleanup(func() {
		showLog(tb, s)
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
}

// showLog puts the end of the server's log into that of a failed test.
func showLog(tb testing.TB, s closer) {
	if path := s.LogPath(); tb.Failed() && path != "" {
		tb.Logf("%s:\n%s", path, tail(path, testLogLines))
	}
}

// Pool holds servers that the tests of a package share. Each is started when a test
// first asks for it. The zero value is ready:
//
//	var pool servers.Pool
//
//	func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }
type Pool struct {
	mu      sync.Mutex
	mysql   *MySQL
	mariadb *MySQL
	kafka   *Kafka
}

// Main runs the package's tests, stops the servers, and answers the exit code.
func (p *Pool) Main(m *testing.M) int {
	defer p.Close()
	return m.Run()
}

// MySQL is the shared MySQL server. Tests that stop or pause it must bring it back.
func (p *Pool) MySQL(tb testing.TB) *MySQL {
	tb.Helper()
	return shared(tb, p, &p.mysql, func() (*MySQL, error) {
		return StartMySQL(tb.Context(), Options{Log: tb.Output()})
	})
}

// MariaDB is the shared MariaDB server.
func (p *Pool) MariaDB(tb testing.TB) *MySQL {
	tb.Helper()
	return shared(tb, p, &p.mariadb, func() (*MySQL, error) {
		return StartMariaDB(tb.Context(), Options{Log: tb.Output()})
	})
}

// Kafka is the shared Kafka broker.
func (p *Pool) Kafka(tb testing.TB) *Kafka {
	tb.Helper()
	return shared(tb, p, &p.kafka, func() (*Kafka, error) {
		return StartKafka(tb.Context(), KafkaOptions{Log: tb.Output()})
	})
}

func shared[S interface {
	comparable
	closer
}](tb testing.TB, p *Pool, slot *S, start func() (S, error)) S {
	tb.Helper()
	wanted(tb)
	p.mu.Lock()
	defer p.mu.Unlock()
	var none S
	if *slot == none {
		s, err := start()
		if err != nil {
			tb.Fatal(err)
		}
		*slot = s
	}
	s := *slot
	tb.Cleanup(func() { showLog(tb, s) })
	return s
}

// Close stops the servers of the pool. Their data goes with them, so errors at the
// end of a test run matter to nobody.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mysql != nil {
		_ = p.mysql.Close()
	}
	if p.mariadb != nil {
		_ = p.mariadb.Close()
	}
	if p.kafka != nil {
		_ = p.kafka.Close()
	}
	p.mysql, p.mariadb, p.kafka = nil, nil, nil
}
