package canal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

const (
	// chunkBytes is what a chunk of selected rows is meant to take in memory;
	// chunkMost is where its reading is broken off.
	chunkBytes = 4 << 20
	chunkMost  = 4 * chunkBytes
	// firstChunk and largestChunk bound the rows of a chunk.
	firstChunk   = 500
	largestChunk = 5000
	// weighedAtOnce is how many texts one statement asks the order of.
	weighedAtOnce = 200
	// selectSilence is how long the server may think about a chunk.
	selectSilence = 2 * time.Minute
	// selectTime is how long one row may take to come.
	selectTime = 10 * time.Minute
)

// selector selects rows of outbox tables, on a connection that it opens when it
// needs one.
type selector struct {
	cfg    Config
	dialer *dialer
	server *Server // that the connection must lead to; nil for any
	needed func(*schema.Table) []int

	session       *session
	logsCascades  bool // the server there
	limit         int
	tableVersions map[schema.Name]*selectedTable
}

// selectedTable is how the rows of one table are selected.
type selectedTable struct {
	table   *schema.Table
	list    string // of expressions
	columns []int  // of the expressions
}

// sessionSettings make what a SELECT brings independent of the server's settings.
var sessionSettings = []string{
	"SET NAMES utf8mb4",
	"SET SESSION sql_mode = ''",
	"SET SESSION time_zone = '+00:00'",
	rawResults,
	"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
	"SET SESSION TRANSACTION READ ONLY",
}

// rawResults has texts come in the character sets of their columns.
const rawResults = "SET SESSION character_set_results = NULL"

// on runs f on the selector's connection.
func (s *selector) on(ctx context.Context, f func(*session) error) error {
	if s.session == nil {
		if err := s.connect(ctx); err != nil {
			return err
		}
	}
	_, err := guarded(func() (struct{}, error) { return struct{}{}, f(s.session) })
	return ctxOr(ctx, err)
}

func (s *selector) connect(ctx context.Context) error {
	ss, err := dial(ctx, s.cfg, s.dialer)
	if err != nil {
		return err
	}
	now, err := ss.inspect()
	if err == nil && s.server != nil && now.identity() != s.server.identity() {
		err = newError(ServerChanged, nil, "the address led to server %s first and to %s then", s.server.identity(),
			now.identity())
	}
	for _, set := range sessionSettings {
		if err == nil {
			_, err = ss.execute(set)
		}
	}
	if err != nil {
		_ = ss.conn.Close()
		return ctxOr(ctx, classify(err, Disconnected, "preparing to select snapshot rows"))
	}
	s.dialer.setReadTimeout(selectSilence)
	s.session, s.logsCascades = ss, now.logsCascades
	return nil
}

func (s *selector) close() {
	if s.session != nil {
		_ = s.session.conn.Close()
		s.session = nil
	}
}

// CheckSnapshot looks whether the rows that stand in the outbox tables could be read
// now, from a start by GTID set or by file and offset, by reading one of each table. It
// returns the number of tables, and of their rows as the server estimates.
func CheckSnapshot(ctx context.Context, cfg Config, byGTID bool) (tables int, rows uint64, err error) {
	cfg = cfg.withDefaults()
	host, err := choose(ctx, cfg, nil)
	if err != nil {
		return 0, 0, err
	}
	cfg = cfg.at(host)
	d := newDialer(cfg.Dialer)
	defer d.close()
	defer context.AfterFunc(ctx, d.close)()
	s := &selector{cfg: cfg, dialer: d, needed: cfg.Needed, limit: 1, tableVersions: map[schema.Name]*selectedTable{}}
	defer s.close()
	if err := s.settle(ctx, byGTID); err != nil {
		return 0, 0, err
	}
	list, rows, err := s.tables(ctx)
	for _, t := range list {
		if err == nil {
			s.limit = 1
			_, _, err = s.chunk(ctx, t, nil)
		}
	}
	return len(list), rows, err
}

// tables lists the outbox tables in the order of their names.
func (s *selector) tables(ctx context.Context) (tables []*snapshotTable, rows uint64, err error) {
	err = s.on(ctx, func(ss *session) error {
		if err := ss.showAll(); err != nil {
			return err
		}
		r, err := ss.query("its tables", tablesQuery)
		if err != nil {
			return err
		}
		for i := range r.RowNumber() {
			name := schema.Name{Database: text(r, i, 0), Table: text(r, i, 1)}
			kind := tableKind{text(r, i, 2), text(r, i, 3)}
			matches, err := s.cfg.Tables.matches(name)
			if err != nil {
				return err
			}
			if !matches || !kind.isTable() && !slices.Contains(s.cfg.Tables.List, name) {
				continue
			}
			if err := kind.suits(name); err != nil {
				return err
			}
			t, n, err := s.table(ss, name)
			if err != nil {
				return err
			}
			tables, rows = append(tables, t), rows+n
		}
		// Asking for columns has set it otherwise.
		if _, err := ss.execute(rawResults); err != nil {
			return classify(err, Disconnected, "preparing to select snapshot rows")
		}
		return nil
	})
	slices.SortFunc(tables, func(a, b *snapshotTable) int {
		return cmp.Or(strings.Compare(a.name.Database, b.name.Database), strings.Compare(a.name.Table, b.name.Table))
	})
	for i, t := range tables {
		t.index = i
	}
	return tables, rows, err
}

const snapshotTableQuery = "SELECT t.ENGINE, t.TABLE_ROWS, e.TRANSACTIONS FROM information_schema.TABLES t " +
	"LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME = ?"

const collationsQuery = "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? " +
	"AND TABLE_NAME = ? AND COLLATION_NAME IS NOT NULL"

// table looks at one table, and works out how to select from it.
func (s *selector) table(ss *session, name schema.Name) (t *snapshotTable, rows uint64, err error) {
	r, err := ss.query("outbox table "+name.String(), snapshotTableQuery, name.Database, name.Table)
	if err != nil {
		return nil, 0, err
	}
	if r.RowNumber() == 0 {
		return nil, 0, newError(UnknownTable, nil, "outbox table %s was dropped just now", name)
	}
	if text(r, 0, 2) != "YES" {
		return nil, 0, newError(BadConfig, nil, "outbox table %s has engine %s, which has no transactions: a row can be "+
			"seen there before it is in the binlog, and would be published twice. "+
			"Make it InnoDB, or begin without the rows that stand there (source.start=current)", name, text(r, 0, 0))
	}
	rows, _ = r.GetUint(0, 1)
	if err := s.cascades(ss, name); err != nil {
		return nil, 0, err
	}
	columns, err := ss.columns(name)
	if err != nil {
		return nil, 0, err
	}
	table, err := schema.FromInformationSchema(name, columns)
	if err != nil {
		return nil, 0, newError(UnknownTable, err, "reading the columns of %s", name)
	}
	table.SetInvalidText(s.cfg.InvalidText)
	collations := map[string]string{}
	if r, err = ss.query("the collations of "+name.String(), collationsQuery, name.Database, name.Table); err != nil {
		return nil, 0, err
	}
	for i := range r.RowNumber() {
		collations[text(r, i, 0)] = text(r, i, 1)
	}
	key, err := newSnapshotKey(table, collations)
	if err != nil {
		return nil, 0, err
	}
	s.tableVersions[name] = s.tableVersion(table)
	return &snapshotTable{name: name, key: key}, rows, nil
}

// cascading is a foreign key in SHOW CREATE TABLE by which the engine removes rows.
var cascading = regexp.MustCompile(`\) REFERENCES .* ON DELETE CASCADE`)

// cascades refuses a table from which the engine removes rows, when their parents go,
// without a word in the binlog: such a row may go before its turn.
func (s *selector) cascades(ss *session, name schema.Name) error {
	if s.logsCascades {
		return nil
	}
	r, err := ss.query("the foreign keys of "+name.String(),
		"SHOW CREATE TABLE "+quotedName(name.Database)+"."+quotedName(name.Table))
	if err != nil {
		return err
	}
	if !cascading.MatchString(text(r, 0, 1)) {
		return nil
	}
	e := newError(BadConfig, nil, "outbox table %s has a foreign key with ON DELETE CASCADE, by which this server "+
		"removes rows without logging that: one that goes before it is read would be lost. "+
		"Drop the key for as long as the rows that stand there are read, or begin without them (source.start=current)", name)
	e.Table = name.String()
	return e
}

func (s *selector) tableVersion(table *schema.Table) *selectedTable {
	var want []int
	if s.needed != nil {
		want = slices.Clone(s.needed(table))
	} else {
		for i := range table.Columns {
			want = append(want, i)
		}
	}
	want = append(want, table.PrimaryKey...)
	slices.Sort(want)
	sh := &selectedTable{table: table}
	var list []string
	for _, i := range slices.Compact(want) {
		if i < 0 || i >= len(table.Columns) {
			continue
		}
		c := &table.Columns[i]
		sh.columns = append(sh.columns, i)
		list = append(list, c.SelectExpr(quotedName(c.Name)))
	}
	sh.list = strings.Join(list, ", ")
	return sh
}

// errEnough breaks off the reading of a chunk.
var errEnough = errors.New("the chunk is large enough")

// chunk selects the next rows of a table.
func (s *selector) chunk(ctx context.Context, t *snapshotTable, after []string) (rows []selectedRow, last bool,
	err error) {
	if s.limit == 0 {
		s.limit = firstChunk
	}
	sh := s.tableVersions[t.name]
	sql := "SELECT " + sh.list + " FROM " + quotedName(t.name.Database) + "." + quotedName(t.name.Table)
	if after != nil {
		sql += " WHERE " + t.key.after(after)
	}
	sql += fmt.Sprintf(" ORDER BY %s LIMIT %d", t.key.order(), s.limit)
	size := 0
	err = s.on(ctx, func(ss *session) error {
		var result mysql.Result
		ss.wire.allow(maxEvent, selectTime)
		return ss.conn.ExecuteSelectStreaming(sql, &result, func(values []mysql.FieldValue) error {
			ss.wire.allow(maxEvent, selectTime)
			row, err := sh.row(t, values)
			if err != nil {
				return err
			}
			rows = append(rows, row)
			if size += row.size; size > chunkMost {
				return errEnough
			}
			return nil
		}, nil)
	})
	if errors.Is(err, errEnough) {
		s.close() // what else it would send is not wanted
		s.limit = max(1, len(rows)/4)
		return rows, false, nil
	}
	if err != nil {
		s.close()
		return nil, false, ctxOr(ctx, classify(err, Disconnected, "selecting snapshot rows of "+t.name.String()))
	}
	last = len(rows) < s.limit
	if len(rows) > 0 {
		s.limit = min(max(1, chunkBytes/(size/len(rows)+1)), 2*s.limit, largestChunk)
	}
	return rows, last, nil
}

func (sh *selectedTable) row(t *snapshotTable, values []mysql.FieldValue) (selectedRow, error) {
	image := make([]any, len(sh.table.Columns))
	for i := range image {
		image[i] = schema.Missing
	}
	for i, at := range sh.columns {
		v, err := sh.table.Columns[at].DecodeSelected(values[i].Value())
		if err != nil {
			return selectedRow{}, newError(Undecodable, err, "reading a snapshot row of %s", t.name)
		}
		image[at] = v
	}
	key, err := t.key.of(sh.table, image)
	return selectedRow{table: sh.table, key: key, image: image, size: sizeOf(image)}, err
}

// sortable encodes keys; the server is asked for the weights of texts.
func (s *selector) sortable(ctx context.Context, t *snapshotTable, keys [][]string) ([][]byte, error) {
	weights := make([][]string, len(keys))
	if t.key.weighed {
		for from := 0; from < len(keys); from += weighedAtOnce {
			to := min(from+weighedAtOnce, len(keys))
			if err := s.weigh(ctx, t.key, keys[from:to], weights[from:to]); err != nil {
				return nil, err
			}
		}
	}
	out := make([][]byte, len(keys))
	for i := range keys {
		var err error
		if out[i], err = t.key.sortable(keys[i], weights[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *selector) weigh(ctx context.Context, key *snapshotKey, keys [][]string, weights [][]string) error {
	var list []string
	for _, k := range keys {
		for i := range key.columns {
			if c := &key.columns[i]; c.Type.IsText() {
				list = append(list, c.weight(k[i]))
			}
		}
	}
	return s.on(ctx, func(ss *session) error {
		r, err := ss.query("the order of primary keys", "SELECT "+strings.Join(list, ", "))
		if err != nil {
			return err
		}
		each := len(list) / len(keys)
		for i := range keys {
			for j := range each {
				if null, _ := r.IsNull(0, i*each+j); null {
					return newError(ServerFailed, nil, "the server does not tell the order of the texts in a primary key")
				}
				weights[i] = append(weights[i], text(r, 0, i*each+j))
			}
		}
		return nil
	})
}

// now is the place in the binlog behind all that a SELECT can have seen.
func (s *selector) now(ctx context.Context) (file string, pos uint64, err error) {
	err = s.on(ctx, func(ss *session) error {
		file, pos, _, err = ss.binlogStatus(s.server)
		return err
	})
	return file, pos, err
}
