package servers

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Replicate makes replica follow source by GTID and keeps it read-only. What is in
// the replica's binlog alone is forgotten, so that both begin with the same history
// when the source still has all of its own. It returns when both threads of the
// replica run. The settings of the account that Own servers have are enough.
func Replicate(ctx context.Context, replica, source *MySQL) error {
	if replica.kind != source.kind {
		return errors.New("servers: a MySQL can't follow a MariaDB, nor the other way round")
	}
	var statements []string
	if replica.kind == KindMariaDB {
		statements = []string{
			"STOP SLAVE", "RESET MASTER", "SET GLOBAL gtid_slave_pos=''",
			fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%d, MASTER_USER='%s', MASTER_PASSWORD='%s', "+
				"MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos",
				source.Host(), source.Port(), source.User(), source.Password()),
			"SET GLOBAL read_only=ON", "START SLAVE",
		}
	} else {
		statements = []string{
			"STOP REPLICA", "RESET BINARY LOGS AND GTIDS", follow(source),
			"SET GLOBAL super_read_only=ON", "START REPLICA",
		}
	}
	if err := replica.Exec(ctx, statements...); err != nil {
		return err
	}
	return replica.replicating(ctx)
}

func follow(source *MySQL) string {
	return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%d, SOURCE_USER='%s', "+
		"SOURCE_PASSWORD='%s', "+
		"SOURCE_CONNECT_RETRY=1, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", source.Host(), source.Port(),
		source.User(), source.Password())
}

// replicating waits until the replica's threads run.
func (s *MySQL) replicating(ctx context.Context) error {
	return poll(ctx, 20*time.Millisecond, nil, func(ctx context.Context) error {
		statement, io, sql, last := "SHOW REPLICA STATUS", "Replica_IO_Running", "Replica_SQL_Running", "Last_IO_Error"
		if s.kind == KindMariaDB {
			statement, io, sql = "SHOW SLAVE STATUS", "Slave_IO_Running", "Slave_SQL_Running"
		}
		r, err := s.Query(ctx, statement)
		if err != nil {
			return err
		}
		if r.RowNumber() == 0 {
			return fmt.Errorf("%s follows nobody", s.name)
		}
		a, _ := r.GetStringByName(0, io)
		b, _ := r.GetStringByName(0, sql)
		if a == "Yes" && b == "Yes" {
			return nil
		}
		why, _ := r.GetStringByName(0, last)
		return fmt.Errorf("the threads of %s are %s and %s: %s", s.name, a, b, why)
	})
}

// CatchUp waits until replica has applied all that source has committed now.
func CatchUp(ctx context.Context, replica, source *MySQL) error {
	if replica.kind == KindMariaDB {
		now, err := source.Value(ctx, "SELECT @@GLOBAL.gtid_binlog_pos")
		if err != nil {
			return err
		}
		_, err = replica.Query(ctx, fmt.Sprintf("SELECT MASTER_GTID_WAIT('%s', 60)", now))
		return err
	}
	now, err := source.Value(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return err
	}
	late, err := replica.Value(ctx, fmt.Sprintf("SELECT WAIT_FOR_EXECUTED_GTID_SET('%s', 60)", now))
	if err == nil && late != "0" {
		err = fmt.Errorf("%s has not caught up with %s", replica.name, source.name)
	}
	return err
}

// SwitchOver makes the replica `to` the primary, as a planned switch-over does:
// the old primary `from` becomes read-only, the replica catches up, is made to take
// writes, and the old one follows it. Connections of readers stay. Both are MySQL.
func SwitchOver(ctx context.Context, from, to *MySQL) error {
	if err := from.Exec(ctx, "SET GLOBAL super_read_only=ON"); err != nil {
		return err
	}
	if err := CatchUp(ctx, to, from); err != nil {
		return err
	}
	if err := Promote(ctx, to); err != nil {
		return err
	}
	if err := from.Exec(ctx, "STOP REPLICA", follow(to), "START REPLICA"); err != nil {
		return err
	}
	return from.replicating(ctx)
}

// Promote makes a replica take writes, whatever has become of its source.
func Promote(ctx context.Context, s *MySQL) error {
	if s.kind == KindMariaDB {
		return s.Exec(ctx, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=OFF")
	}
	return s.Exec(ctx, "STOP REPLICA", "RESET REPLICA ALL", "SET GLOBAL super_read_only=OFF", "SET GLOBAL read_only=OFF")
}
