package canal_test

import (
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// A server whose binlog can't hold the rows of an outbox table that it has is refused: by
// whatever it leaves them out.
func TestRealUnloggedTables(t *testing.T) {
	mysql := func(args ...string) func(t *testing.T) *database {
		return func(t *testing.T) *database {
			return newDatabase(t, servers.MySQLForTest(t, servers.Options{Args: args}))
		}
	}
	mariaDB := func(args ...string) func(t *testing.T) *database {
		return func(t *testing.T) *database {
			return newDatabase(t, servers.MariaDBForTest(t, servers.Options{Args: args}))
		}
	}
	const db = "ttestrealunloggedtables"
	replica := []string{"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1",
		"SET GLOBAL super_read_only=ON"}
	slave := []string{"CHANGE MASTER 'a' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1", "SET GLOBAL read_only=ON"}
	filter := func(f string) []string {
		return append([]string{replica[0], "CHANGE REPLICATION FILTER " + f}, replica[1])
	}
	for _, c := range []struct {
		name   string
		server func(t *testing.T) *database
		make   []string
		says   string
	}{
		{"MySQL replica", mysql("--skip-log-replica-updates"), replica, "does not log what it replicates"},
		{"MySQL that was a replica", mysql("--skip-log-replica-updates"), replica[:1], ""},
		{"MySQL replica that logs", mysql("--binlog-do-db=" + db + "mysqlreplicathatlogs"), replica, ""},
		{"MariaDB replica", mariaDB(), slave, "does not log what it replicates"},
		{"MariaDB replica that logs", mariaDB("--log-slave-updates"), slave, ""},
		{"MariaDB", mariaDB(), nil, ""},
		{"MySQL do db", mysql("--binlog-do-db=another", "--binlog-do-db=one"), nil, "kept out of the server's binlog"},
		{"MySQL ignore db", mysql("--binlog-ignore-db=" + db + "mysqlignoredb"), nil, "kept out of the server's binlog"},
		{"MariaDB ignore db", mariaDB("--binlog-ignore-db=" + db + "mariadbignoredb"), nil,
			"kept out of the server's binlog"},
		{"MySQL filter of tables", mysql(), filter("REPLICATE_WILD_IGNORE_TABLE = ('%mysqlfilteroftables.out%')"),
			"leaves out outbox table"},
		{"MySQL filter of databases", mysql(), filter("REPLICATE_DO_DB = (another)"), "leaves out outbox table"},
		{"MySQL filter of others", mysql(), filter("REPLICATE_WILD_IGNORE_TABLE = ('another.%')"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.server(t)
			at := d.now()
			d.exec(c.make...)
			s, err := canal.Open(t.Context(), d.cfg, at)
			if err == nil {
				_ = s.Close()
			}
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, canal.WrongMode, position.GTID{}, c.says)
		})
	}
}

// Who may not see whether a server is a replica is told which right is missing.
func TestRealUnloggedReplicaUnseen(t *testing.T) {
	db := newDatabase(t, servers.MariaDBForTest(t, servers.Options{Own: true}))
	db.exec("CREATE USER reader IDENTIFIED BY 'pw'", "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO reader",
		"GRANT SELECT ON "+db.name+".* TO reader")
	at := db.now()
	db.cfg.User, db.cfg.Password = "reader", "pw"
	s, err := canal.Open(t.Context(), db.cfg, at)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	db.exec("SET GLOBAL read_only=ON")
	_, err = canal.Open(t.Context(), db.cfg, at)
	if wantError(t, err, canal.AccessDenied, position.GTID{}, "SLAVE MONITOR"); err != nil &&
		!strings.Contains(err.Error(), "read_only=ON") {
		t.Error(err)
	}
}
