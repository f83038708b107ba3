package canal

import (
	"context"
	"errors"
	"time"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const (
	// settlePatience is how long transactions may be in flight before the opening
	// gives up and is tried again: a semi-synchronous source waits for its replicas
	// ten seconds by default.
	settlePatience = 30 * time.Second
	settlePause    = 50 * time.Millisecond
)

// settle returns when all that was in the binlog before the call is committed in the
// engine, and so is seen by whatever is selected from then on.
//
// A transaction is written to the binlog first; then a semi-synchronous source waits
// for a replica, and only then the engine commits. A start that lies in between has
// the transaction behind it, so that the stream does not bring it, and a SELECT does
// not see it yet. MySQL's GTID sets hold what the engine has committed, so that such
// a start needs none of this; a file and offset, and all that MariaDB says, are the
// end of the binlog.
func (s *selector) settle(ctx context.Context, byGTID bool) error {
	return s.on(ctx, func(ss *session) error {
		switch {
		case ss.maria:
			return s.settleMariaDB(ctx, ss)
		case byGTID:
			return nil
		}
		return s.settleMySQL(ctx, ss)
	})
}

// until asks again and again until done says so.
func (s *selector) until(ctx context.Context, done func() (bool, error)) error {
	end := time.Now().Add(settlePatience)
	for said := false; ; {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return newError(ServerFailed, nil, "transactions that were in the binlog %s ago are still not committed in the "+
				"engine, so that their rows can't be selected yet: "+
				"a semi-synchronous source may be waiting for a replica, or a transaction that wrote an outbox table has been "+
				"open all the time", settlePatience)
		}
		if !said {
			said = true
			s.cfg.progress("waiting for transactions in flight")
			s.cfg.Logger.Info("waiting until what is in the binlog is committed in the engine, too")
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settleMariaDB looks how far the engine has come by starting snapshots: they wait for
// the order of commits, and the server says where in the binlog they are.
//
// What it says is wrong after a rotation: the new file with the offset in the old one,
// until something is committed in the new one. So only the end of the binlog is taken
// for a place. That one waits for a rotation, which waits for what is in flight.
func (s *selector) settleMariaDB(ctx context.Context, ss *session) error {
	return s.until(ctx, func() (bool, error) {
		file, end, _, err := ss.binlogStatus(s.server)
		if err != nil {
			return false, err
		}
		at, pos, err := ss.snapshot()
		if err != nil {
			return false, err
		}
		now, limit, _, err := ss.binlogStatus(s.server)
		switch {
		case err != nil:
			return false, err
		case at != file || now != file:
			return false, nil // it was rotated meanwhile
		case pos >= end && pos <= limit:
			return true, nil
		}
		begin, err := ss.gtidAt(file, 4)
		if err != nil {
			return false, err
		}
		until, err := ss.gtidAt(file, end)
		return err == nil && begin != "" && begin == until, err // the file has no transaction yet
	})
}

// snapshot is the place in MariaDB's binlog up to which a snapshot sees everything.
func (s *session) snapshot() (file string, pos uint64, err error) {
	if _, err = s.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
		return "", 0, classify(err, Disconnected, "starting a snapshot")
	}
	r, err := s.query("the place of a snapshot",
		"SHOW STATUS WHERE Variable_name IN ('Binlog_snapshot_file', 'Binlog_snapshot_position')")
	if err != nil {
		return "", 0, err
	}
	for i := range r.RowNumber() {
		if text(r, i, 0) == "Binlog_snapshot_file" {
			file = text(r, i, 1)
		} else {
			pos, _ = r.GetUint(i, 1)
		}
	}
	if file == "" {
		return "", 0, newError(ServerFailed, nil, "the server does not tell the place of a snapshot in its binlog")
	}
	_, err = s.execute("ROLLBACK")
	return file, pos, err
}

// writersQuery asks for the transactions that hold a lock on the definition of a table
// because they write it, which they do until the engine has committed them.
const writersQuery = "SELECT OBJECT_SCHEMA, OBJECT_NAME, CONCAT_WS(' ', OWNER_THREAD_ID, OWNER_EVENT_ID, " +
	"OBJECT_INSTANCE_BEGIN) " +
	"FROM performance_schema.metadata_locks WHERE OBJECT_TYPE = 'TABLE' AND LOCK_STATUS = 'GRANTED' " +
	"AND LOCK_TYPE NOT IN ('INTENTION_EXCLUSIVE', 'SHARED', 'SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_READ_ONLY')"

const watchesLocksQuery = "SELECT (SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME = " +
	"'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES') * " +
	"(SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE NAME = 'global_instrumentation' AND ENABLED = 'YES')"

// settleMySQL waits for the end of all transactions that have written outbox tables by
// now: one that is in the binlog and not in the engine is among them.
func (s *selector) settleMySQL(ctx context.Context, ss *session) error {
	watched, err := ss.value("whether it watches metadata locks", watchesLocksQuery)
	switch {
	case err != nil:
		return unsettled(err, "")
	case watched != "1":
		return unsettled(nil, ", which performance_schema does not watch (the instrument wait/lock/metadata/sql/mdl is off)")
	}
	first, err := s.writers(ss)
	if err != nil {
		return unsettled(err, "")
	}
	return s.until(ctx, func() (bool, error) {
		if len(first) == 0 {
			return true, nil
		}
		now, err := s.writers(ss)
		for w := range first {
			if !now[w] {
				delete(first, w)
			}
		}
		return err == nil && len(first) == 0, err
	})
}

// unsettled says what is missing, and what else could be done.
func unsettled(err error, why string) error {
	kind := WrongMode
	if err != nil {
		var e *Error
		if kind = AccessDenied; !errors.As(err, &e) || e.Kind != kind {
			return err
		}
	}
	return newError(kind, err, "without GTIDs (gtid_mode=ON, and source.positions other than file) the rows that stand "+
		"in the tables can be told from those to come only "+
		"by the transactions that hold metadata locks%s: GRANT SELECT ON performance_schema.* to the user and leave that "+
		"instrument on, switch GTIDs on, or begin without the rows that stand there (source.start=current)", why)
}

func (s *selector) writers(ss *session) (map[string]bool, error) {
	r, err := ss.inUTF8("who writes outbox tables", writersQuery)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for i := range r.RowNumber() {
		matches, err := s.cfg.Tables.matches(schema.Name{Database: text(r, i, 0), Table: text(r, i, 1)})
		if err != nil {
			return nil, err
		}
		if matches {
			all[text(r, i, 2)] = true
		}
	}
	_, err = ss.execute(rawResults)
	return all, err
}
