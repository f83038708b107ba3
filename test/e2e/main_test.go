package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// theLab is made by TestMain and shared by all scenarios, which run one after the
// other: two cores carry one load at a time.
var theLab *lab

func TestMain(m *testing.M) { os.Exit(runMain(m)) }

func runMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "binlog-outbox-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	theLab = &lab{dir: dir}
	code := m.Run()
	theLab.close()
	if code == 0 {
		os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs, configurations and data directories of the connector are kept in", dir)
	}
	return code
}

// lab is what the scenarios share: the program and one server of each kind, which
// is started when a scenario first asks for it. The servers are our own whatever
// the environment names, since scenarios kill them and reset their binlogs.
type lab struct {
	dir     string
	program string
	kafka   *servers.Kafka
	mysql   *servers.MySQL
	noGTID  *servers.MySQL
	mariadb *servers.MySQL
}

func (l *lab) close() {
	for _, s := range []*servers.MySQL{l.mysql, l.noGTID, l.mariadb} {
		if s != nil {
			_ = s.Close()
		}
	}
	if l.kafka != nil {
		_ = l.kafka.Close()
	}
}

// binary builds the program at first use.
func (l *lab) binary(t *testing.T) string {
	t.Helper()
	if l.program == "" {
		program, err := harness.Build(t.Context(), l.dir)
		if err != nil {
			t.Fatal(err)
		}
		l.program = program
	}
	return l.program
}

// broker is Kafka; scenarios that kill it bring it back.
func (l *lab) broker(t *testing.T) *servers.Kafka {
	t.Helper()
	if l.kafka == nil {
		k, err := servers.StartKafka(t.Context(), servers.KafkaOptions{
			Own: true, Log: t.Output(), Heap: "768m",
			// A restart after kill -9 checks the tail of each log; the scenarios wait for it.
			Properties: []string{"num.recovery.threads.per.data.dir=2", "log.segment.bytes=268435456"},
		})
		if err != nil {
			t.Fatal(err)
		}
		l.kafka = k
	}
	select {
	case <-l.kafka.Done():
		t.Logf("the broker was down; end of its log:\n%s", lastLines(l.kafka.LogPath(), 20))
		if err := l.kafka.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	default:
	}
	return l.kafka
}

// quick makes the database servers cheap to write to. They survive kill -9 as they are.
var quick = []string{"--innodb-buffer-pool-size=512M", "--innodb-doublewrite=OFF", "--performance-schema=OFF",
	"--max-allowed-packet=128M", "--max-binlog-size=256M"}

// MySQL 9.7 with GTIDs.
func mysqlGTID(t *testing.T) *servers.MySQL {
	t.Helper()
	return database(t, &theLab.mysql, servers.StartMySQL, append(quick, "--innodb-redo-log-capacity=1G"))
}

// MySQL 9.7 with gtid_mode=OFF.
func mysqlFile(t *testing.T) *servers.MySQL {
	t.Helper()
	return database(t, &theLab.noGTID, servers.StartMySQL,
		append(quick, "--innodb-redo-log-capacity=1G", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"))
}

// MariaDB always has GTIDs; whether they are used is the connector's setting.
func mariadb(t *testing.T) *servers.MySQL {
	t.Helper()
	return database(t, &theLab.mariadb, servers.StartMariaDB, append(quick, "--innodb-log-file-size=512M"))
}

func database(t *testing.T, slot **servers.MySQL, start func(context.Context, servers.Options) (*servers.MySQL, error),
	args []string) *servers.MySQL {
	t.Helper()
	if *slot == nil {
		s, err := start(t.Context(), servers.Options{Own: true, Args: args, Log: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		*slot = s
		if err := s.CreateCDCUser(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-(*slot).Done(): // with a scenario that failed in the middle of an outage
		t.Logf("the server was down; end of its log:\n%s", lastLines((*slot).LogPath(), 20))
		if err := (*slot).Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	default:
	}
	return *slot
}
