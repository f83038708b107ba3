package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// adoption is an offset of Debezium's as a position here.
type adoption struct {
	to position.Position
	// notes say what becomes of the transaction that the offset is inside of.
	notes []string
}

// offsetError is an offset of Debezium's that can't be taken over.
type offsetError struct{ err error }

func (e *offsetError) Error() string {
	return "Debezium's offset can't be taken over: " + e.err.Error()
}
func (e *offsetError) Unwrap() error { return e.err }

// adopt finds the position on the source that is where Debezium was: what it has published
// is published, to the row, and nothing else is. keys are those of Debezium's connector; nil
// takes those of the connector here. Errors are of type *offsetError when the offset is the
// cause, and else those of the source.
func (s *sources) adopt(ctx context.Context, at offset.Offset, keys map[string]string) (adoption, error) {
	now, err := s.begin(ctx, config.StartCurrent)
	if err != nil {
		return adoption{}, err
	}
	place, err := s.asPlace(at, now, keys)
	if err != nil {
		return adoption{}, &offsetError{err}
	}
	c, err := s.connect()
	if err != nil {
		return adoption{}, err
	}
	var rows connector.Counter
	found, err := canal.Locate(ctx, c, place, now.Set != nil, func(r *schema.Row) { rows.Next(r) })
	if err != nil {
		return adoption{}, adoptError(err)
	}
	out := adoption{to: found.Before}
	if in := found.Within; in != nil {
		if err := out.within(in, rows.Counted()); err != nil {
			return adoption{}, &offsetError{err}
		}
	}
	if out.to.File != "" {
		out.to.Server = now.Server
	}
	return out, nil
}

// adoptError tells what is wrong with an offset from what is wrong with the source, which
// passes.
func adoptError(err error) error {
	if e, ok := errors.AsType[*canal.Error](err); ok && !e.Retryable() {
		return &offsetError{err}
	}
	return err
}

func (s *sources) asPlace(at offset.Offset, now position.Position, keys map[string]string) (canal.BinlogOffset, error) {
	p := canal.BinlogOffset{File: at.File, Pos: at.Pos, Events: at.Event, Rows: at.Row, Second: at.Second}
	annotations := s.cfg.Source.DebeziumQuery
	if keys != nil {
		annotations = strings.EqualFold(strings.TrimSpace(keys[offset.IncludeQuery]), "true")
		counts, err := debezium.TableFilter(keys)
		if err != nil {
			return p, err
		}
		p.Counts = func(n schema.Name) (bool, error) { return counts(n.Database, n.Table) }
	}
	p.Annotations = annotations && now.Flavor == position.MariaDB
	switch {
	case now.Set != nil && at.GTIDs != "":
		var err error
		p.Set, err = position.ParseSet(now.Flavor, at.GTIDs)
		return p, err
	case at.File == "" || at.Pos < 4:
		return p, errors.New("it has no file and pos, and this connector goes by them: the source has no GTIDs, or " +
			"source.positions is file")
	}
	_, err := position.CompareFiles(at.File, at.File)
	return p, err
}

// within goes on inside of a transaction, of which these rows are published.
func (a *adoption) within(in *canal.Within, rows []position.KindRows) error {
	part := position.Partial{GTID: in.Commit.GTID, Rows: rows, Committed: in.Commit.Committed}
	name := position.Row{GTID: in.Commit.GTID, File: in.Commit.File, Pos: in.Commit.Pos}.TransactionID()
	switch {
	case !in.More:
		a.to.Advance(in.Commit)
		a.notes = append(a.notes, fmt.Sprintf("Debezium's last transaction is %s: all of its %d outbox rows are "+
			"published", name, part.Total()))
		return nil
	case in.Prepared:
		return fmt.Errorf("it is inside of the XA transaction %s, of which %d outbox rows are published and others are "+
			"not: let Debezium run on and stop it again", name, part.Total())
	case len(rows) > 0:
		if err := a.to.AddPartial(part); err != nil {
			return err
		}
	}
	a.notes = append(a.notes, fmt.Sprintf("Debezium stopped inside of transaction %s: the first %d of its outbox "+
		"rows are published, the others come", name, part.Total()))
	return nil
}
