package canal

import (
	"context"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const spellingQuery = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE LOWER(TABLE_SCHEMA) = LOWER(?) AND LOWER(TABLE_NAME) = LOWER(?) LIMIT 1"

// Spelling returns how the server spells a table's name that is given in another
// case, as Debezium's lists allow; ok is false when there is no such table.
func Spelling(ctx context.Context, cfg Config, name schema.Name) (spelled schema.Name, ok bool, err error) {
	spelled, err = onHost(ctx, cfg, func(s *session) (schema.Name, error) {
		r, err := s.query("the spelling of "+name.String(), spellingQuery, name.Database, name.Table)
		if err != nil || r.RowNumber() == 0 {
			return schema.Name{}, err
		}
		return schema.Name{Database: text(r, 0, 0), Table: text(r, 0, 1)}, nil
	})
	return spelled, spelled != schema.Name{}, err
}
