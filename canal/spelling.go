package canal

import (
	"context"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const spellingQuery = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE LOWER(TABLE_SCHEMA) = " +
	"LOWER(?) AND LOWER(TABLE_NAME) = LOWER(?) LIMIT 1"

// Spelling returns how the server spells a table's name that is given in another
// case, as Debezium's lists allow; ok is false when there is no such table.
func Spelling(ctx context.Context, cfg Config, name schema.Name) (spelled schema.Name, ok bool, err error) {
	spelled, err = onHost(ctx, cfg, func(s *session) (schema.Name, error) {
		r, err := s.inUTF8("the spelling of "+name.String(), spellingQuery, name.Database, name.Table)
		if err != nil || r.RowNumber() == 0 {
			return schema.Name{}, err
		}
		return schema.Name{Database: text(r, 0, 0), Table: text(r, 0, 1)}, nil
	})
	return spelled, spelled != schema.Name{}, err
}

const tablesQuery = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '') FROM " +
	"information_schema.TABLES ORDER BY TABLE_SCHEMA, TABLE_NAME"

// Matching lists the outbox tables that are there and visible to the user. One that
// can't be an outbox is an error, but for views and sequences, which no pattern means.
func Matching(ctx context.Context, cfg Config) ([]schema.Name, error) {
	return onHost(ctx, cfg, func(s *session) ([]schema.Name, error) {
		r, err := s.inUTF8("its tables", tablesQuery)
		if err != nil {
			return nil, err
		}
		var names []schema.Name
		for i := range r.RowNumber() {
			n, kind := schema.Name{Database: text(r, i, 0), Table: text(r, i, 1)}, tableKind{text(r, i, 2), text(r, i, 3)}
			matches, err := cfg.Tables.matches(n)
			if err != nil {
				return nil, err
			}
			if !kind.isTable() || !matches {
				continue
			}
			if err := kind.suits(n); err != nil {
				return nil, err
			}
			names = append(names, n)
		}
		return names, nil
	})
}
