package canal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// MariaDB's column attribute COMPRESSED shows as types of its own.
const (
	mariaBlobCompressed    = 140
	mariaVarCharCompressed = 141
)

// maxColumns is the server's own limit.
const maxColumns = 4096

// chunkRows is how many rows of one event are decoded at a time. Events hold a
// few kilobytes of rows by default, so this bounds unusual ones only.
const chunkRows = 1024

// tableVersion decodes the rows that follow one table map.
type tableVersion struct {
	table  *schema.Table
	parser *replication.BinlogParser // knows this one table map, under id 1
	types  []byte                    // as on the wire, COMPRESSED columns as what they wrap
	metas  []uint16
	needed []int
	want   []bool // nil means all columns
	idSize int
	// asOf is how far the server was when it was asked for the names, which the
	// binlog does not tell; the zero position when it tells them or nobody knows.
	asOf position.Position
	// named: the binlog tells the columns' names.
	named bool
	// isDirect: go-mysql is not needed for what is wanted of a row.
	isDirect bool
}

// tableVersions makes shapes out of table maps. It is owned by the event handler.
type tableVersions struct {
	flavor position.Flavor
	format *format
	// columns reads a table's columns from the server, none when it is not there.
	columns func(schema.Name) (asked, error)
	// known are the columns at the place of the rows.
	known *columns
	// changes reports whether a table may be changed between the place of the rows and
	// where the server is now; nil where nobody can tell.
	changes func(schema.Name) (bool, error)
	needed  func(*schema.Table) []int
	invalid *schema.InvalidText
	keys    bool  // the primary key is read as well
	maxSize int64 // of inflated rows
}

// errNoPlace says that the binlog can't be read ahead: beyond 4 GiB of a file no place can
// be asked for.
var errNoPlace = errors.New("the place in the binlog is beyond 4 GiB")

// asked is what the server says of a table, and how far it had come when it did.
type asked struct {
	columns []schema.ColumnInfo
	at      position.Position
	// charset is what the table's columns have by default, databaseCharset what its
	// database's tables have; empty when that is not known.
	charset, databaseCharset string
}

// of returns the shape for a table map, made at first use.
func (s *tableVersions) of(tm *tableMap) (*tableVersion, error) {
	sh, err := tm.tableVersion, error(nil)
	if sh == nil {
		sh, err = s.make(tm)
	}
	if err == nil && tm.table.moved {
		tm.table.moved = false
		err = s.confirm(tm.table.name, sh)
	}
	if errors.Is(err, ErrClosed) {
		return nil, err
	}
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = newError(Undecodable, err, "reading the table map of %s", tm.table.name)
		}
		e.Table = tm.table.name.String()
		return nil, e
	}
	tm.tableVersion = sh
	return sh, nil
}

func (s *tableVersions) make(tm *tableMap) (*tableVersion, error) {
	body, original, err := plainTypes(tm.body)
	if err != nil {
		return nil, err
	}
	sh := &tableVersion{parser: replication.NewBinlogParser(), idSize: s.format.idSize(replication.TABLE_MAP_EVENT)}
	sh.parser.SetFlavor(string(s.flavor))
	sh.parser.SetTimestampStringLocation(time.UTC)
	if _, err := parseEvent(sh.parser, s.format.raw); err != nil {
		return nil, fmt.Errorf("handing on the format description event: %w", err)
	}
	e, err := parseEvent(sh.parser, tableMapEvent(body, sh.idSize))
	if err != nil {
		return nil, err
	}
	m := e.Event.(*replication.TableMapEvent)
	sh.named = len(m.ColumnName) > 0
	sh.types, sh.metas = bytes.Clone(m.ColumnType), m.ColumnMeta
	if sh.table, sh.asOf, err = s.table(tm.table.name, wireMap(tm.table.name, m, original, s.flavor)); err != nil {
		return nil, err
	}
	sh.table.SetInvalidText(s.invalid)
	sh.wanted(s.needed)
	if s.keys && sh.want != nil {
		for _, i := range sh.table.PrimaryKey {
			sh.want[i] = true
		}
	}
	// go-mysql renders JSON documents; here they must stay as they are, and a
	// nested document from a hostile server must not be walked recursively.
	for i, t := range m.ColumnType {
		if t == mysql.MYSQL_TYPE_JSON {
			m.ColumnType[i] = mysql.MYSQL_TYPE_BLOB
		}
	}
	sh.isDirect = sh.areDirect()
	// Signs are schema's matter; with the bitmap go-mysql builds a map per row.
	m.SignednessBitmap = nil
	return sh, nil
}

func (sh *tableVersion) wanted(needed func(*schema.Table) []int) {
	if needed == nil {
		sh.needed = make([]int, len(sh.table.Columns))
		for i := range sh.needed {
			sh.needed[i] = i
		}
		return
	}
	sh.want = make([]bool, len(sh.table.Columns))
	for _, i := range needed(sh.table) {
		if i >= 0 && i < len(sh.want) && !sh.want[i] {
			sh.want[i] = true
			sh.needed = append(sh.needed, i)
		}
	}
}

// table finds out the columns: from the binlog when it tells the names, or from what is
// known of the table at this place, when what the binlog tells does not contradict. What
// is not known is asked of the server. Only when nobody knows whether its answer held
// here, too, it returns how far the server was.
func (s *tableVersions) table(name schema.Name, wire schema.TableMap) (*schema.Table, position.Position, error) {
	var none position.Position
	fromMap, mapErr := schema.FromTableMap(wire)
	if t := s.known.table(name); t != nil {
		if mapErr == nil {
			if merged, agreed := fromMap.Merge(t); agreed {
				return merged, none, nil
			}
		} else if t.Check(wire) == nil {
			return t, none, nil
		}
		s.known.forget(name) // changed in a way that the binlog does not hold
	}
	now, err := s.columns(name)
	if err != nil {
		return nil, none, err
	}
	info, infoErr := schema.FromInformationSchema(name, now.columns)
	if mapErr == nil {
		if infoErr != nil {
			info = nil
		}
		t, err := s.named(fromMap, info, &now, wire)
		return t, none, err
	}
	if len(now.columns) == 0 {
		return nil, none, newError(UnknownTable, mapErr,
			"outbox table %s is not on the server any more, or not visible to the user, and the binlog does not tell its "+
				"columns; "+
				"set binlog_row_metadata=FULL so that it does", name)
	}
	if infoErr != nil {
		return nil, none, newError(UnknownTable, infoErr,
			"the columns of outbox table %s can't be read; set binlog_row_metadata=FULL so that the binlog tells them", name)
	}
	if err := info.Check(wire); err != nil {
		return nil, none, newError(SchemaMismatch, err,
			"the rows of outbox table %s were written before the table got its present columns; "+
				"set binlog_row_metadata=FULL so that the binlog tells the columns of its time", name)
	}
	if s.changes == nil {
		return info, now.at, nil
	}
	changes, err := s.changes(name)
	switch {
	case errors.Is(err, errNoPlace):
		return info, now.at, nil
	case err != nil:
		return nil, none, err
	case changes:
		return nil, none, newError(SchemaMismatch, nil,
			"outbox table %s is changed further on in the binlog, and its columns before that are not known: the binlog does "+
				"not tell their names. "+
				"Nothing of these rows was published. Set binlog_row_metadata=FULL so that such rows tell their columns, "+
				"and go on behind the change (offset set), after looking at the rows before it", name)
	}
	s.known.learn(name, &now, info)
	return info, none, nil
}

// confirm compares what is known of a table with what the server says, when the server has
// opened it anew: a change with sql_log_bin=0, or one that a filter kept out of the
// binlog, shows by nothing else if columns of one type change places.
func (s *tableVersions) confirm(name schema.Name, sh *tableVersion) error {
	t := s.known.table(name)
	if t == nil || sh.named || s.changes == nil {
		return nil
	}
	now, err := s.columns(name)
	if err != nil || len(now.columns) == 0 {
		return err // it is gone, as the binlog will say
	}
	info, err := schema.FromInformationSchema(name, now.columns)
	if err == nil && sameColumns(info, t) {
		return nil
	}
	if changes, err := s.changes(name); changes || err != nil && !errors.Is(err, errNoPlace) {
		return err
	}
	return newError(SchemaMismatch, nil, "outbox table %s has other columns than the binlog tells: it was changed by "+
		"something that is not in the binlog (sql_log_bin=0, or a filter), "+
		"and which rows were written after that can't be told. Nothing of these rows was published. Look at them; "+
		"then set the position at or behind them (offset set), from where on the present columns count", name)
}

// sameColumns compares what values are decoded by, as far as the server can show that.
func sameColumns(now, known *schema.Table) bool {
	return slices.EqualFunc(now.Columns, known.Columns, func(a, b schema.Column) bool {
		return a.Name == b.Name && a.Type == schema.Unknown || a.Name == b.Name && a.Type == b.Type &&
			a.Unsigned == b.Unsigned && slices.Equal(a.Elements, b.Elements)
	})
}

// named adds what information_schema tells to a table that the binlog describes.
func (s *tableVersions) named(fromMap, info *schema.Table, now *asked, wire schema.TableMap) (*schema.Table, error) {
	if info == nil {
		return certain(fromMap, wire)
	}
	merged, agreed := fromMap.Merge(info)
	if agreed && s.changes != nil {
		if changes, err := s.changes(fromMap.Name); err == nil && !changes {
			s.known.learn(fromMap.Name, now, info)
		}
	}
	return certain(merged, wire)
}

// certain refuses a table with columns that MariaDB's binlog does not tell apart
// (a UUID from a BINARY) and information_schema no longer knows: the bytes of a
// UUID would be published as if they were meant so.
func certain(t *schema.Table, wire schema.TableMap) (*schema.Table, error) {
	if !wire.Ambiguous() {
		return t, nil
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if (c.Type == schema.Binary || c.Type == schema.VarBinary) && c.ColumnType == "" {
			return nil, newError(SchemaMismatch, nil,
				"column %s of outbox table %s may be a BINARY, UUID, INET4 or INET6: the binlog does not tell, and the table has "+
					"changed since", c.Name, t.Name)
		}
	}
	return t, nil
}

var errEndsEarly = errors.New("it ends early")

// columns takes what stands before the column types of a table map body, and returns their
// number.
func (r *reader) columns() (int, error) {
	r.take(int(r.uint(1)) + 1)
	r.take(int(r.uint(1)) + 1)
	n := r.lenenc()
	if r.bad || n == 0 || n > maxColumns {
		return 0, errEndsEarly
	}
	return int(n), nil
}

// plainTypes checks the column types of a table map body and returns it with
// COMPRESSED columns as the plain types that they travel as, beside the original
// types. go-mysql would misread the metadata behind a type that it does not know.
func plainTypes(body []byte) (plain, original []byte, err error) {
	r := reader{b: body}
	n, err := r.columns()
	if err != nil {
		return nil, nil, err
	}
	at := len(body) - len(r.b)
	if original = r.take(n); r.bad {
		return nil, nil, errEndsEarly
	}
	plain = bytes.Clone(body)
	for i, t := range original {
		switch t {
		case mariaBlobCompressed:
			plain[at+i] = mysql.MYSQL_TYPE_BLOB
		case mariaVarCharCompressed:
			plain[at+i] = mysql.MYSQL_TYPE_VARCHAR
		case mysql.MYSQL_TYPE_VECTOR, mysql.MYSQL_TYPE_JSON, mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_BLOB,
			mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_GEOMETRY:
		default:
			if t == 0 || t > mysql.MYSQL_TYPE_TIME2 || t == mysql.MYSQL_TYPE_NEWDATE {
				return nil, nil, fmt.Errorf("column %d has type %d, which is not known", i+1, t)
			}
		}
	}
	return plain, original, nil
}

// tableMapEvent puts a header, table id 1 and no flags before a table map body.
func tableMapEvent(body []byte, idSize int) []byte {
	e := make([]byte, headerLen+idSize+2, headerLen+idSize+2+len(body))
	e[4] = byte(replication.TABLE_MAP_EVENT)
	e[headerLen] = 1
	e = append(e, body...)
	binary.LittleEndian.PutUint32(e[9:], uint32(len(e)))
	return e
}

func wireMap(name schema.Name, m *replication.TableMapEvent, types []byte, f position.Flavor) schema.TableMap {
	w := schema.TableMap{
		Name: name, MariaDB: f == position.MariaDB,
		Types: types, Metas: m.ColumnMeta, NullBitmap: m.NullBitmap,
		Signedness:     m.SignednessBitmap,
		DefaultCharset: m.DefaultCharset, ColumnCharset: m.ColumnCharset,
		EnumSetDefaultCharset: m.EnumSetDefaultCharset, EnumSetColumnCharset: m.EnumSetColumnCharset,
		EnumValues: m.EnumStrValue, SetValues: m.SetStrValue,
		PrimaryKey: m.PrimaryKey,
	}
	for _, n := range m.ColumnName {
		w.Names = append(w.Names, string(n))
	}
	return w
}

// rows decodes one rows event of inserts, updates or deletes and calls f for each
// row, which owns it. raw belongs to the rows from then on.
func (sh *tableVersion) rows(raw []byte, maxSize int64, f func(schema.Row) error) error {
	raw, err := plainRows(raw, sh.idSize, maxSize)
	if err != nil {
		return err
	}
	kind, body := replication.EventType(raw[4]), raw[headerLen:]
	h, err := parseRowsHead(kind, body, sh.idSize)
	if err != nil {
		return err
	}
	if err := sh.check(&h); err != nil {
		return err
	}
	images := [2]rowsHead{h}
	if h.after == nil {
		return sh.images(raw, body, images[:1], f)
	}
	images[1] = h.afterImage()
	return sh.images(raw, body, images[:], f)
}

// images decodes the rows of an event whose rows have such images.
func (sh *tableVersion) images(raw, body []byte, images []rowsHead, f func(schema.Row) error) error {
	if sh.isDirect {
		return sh.direct(body, images, f)
	}
	h := &images[0]
	binary.LittleEndian.PutUint32(body, 1) // the one table id that the parser knows
	clear(body[4 : sh.idSize+2])           // and no end of statement, at which it would forget
	for start := h.prefix; start < len(body); {
		end, n := start, 0
		for ; end < len(body) && n < chunkRows; n++ {
			for i := range images {
				size, err := imageLen(body[end:], sh.types, sh.metas, &images[i], images[i].countPresent())
				if err != nil {
					return err
				}
				end += size
			}
		}
		chunk := raw
		if start != h.prefix || end != len(body) {
			chunk = append(bytes.Clone(raw[:headerLen+h.prefix]), body[start:end]...)
		}
		if err := sh.chunk(chunk, n, images, f); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// chunk decodes n rows of one or two images each.
func (sh *tableVersion) chunk(raw []byte, n int, images []rowsHead, f func(schema.Row) error) error {
	binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw)))
	e, err := parseEvent(sh.parser, raw)
	if err != nil {
		return err
	}
	rows := e.Event.(*replication.RowsEvent)
	if len(rows.Rows) != n*len(images) {
		return fmt.Errorf("an event of %d images was decoded to %d", n*len(images), len(rows.Rows))
	}
	for i := range rows.Rows {
		if err := sh.table.DecodeRow(rows.Rows[i], rows.SkippedColumns[i], sh.want); err != nil {
			return err
		}
	}
	for i := 0; i < len(rows.Rows); i += len(images) {
		if err := f(sh.row(images, rows.Rows[i:])); err != nil {
			return err
		}
	}
	return nil
}

// row is the change that images of the given heads make.
func (sh *tableVersion) row(heads []rowsHead, images [][]any) schema.Row {
	switch {
	case heads[0].deleted:
		return schema.Row{Table: sh.table, Op: schema.Delete, Before: images[0]}
	case len(heads) == 2:
		return schema.Row{Table: sh.table, Op: schema.Update, Before: images[0], After: images[1]}
	}
	return schema.Row{Table: sh.table, Op: schema.Insert, After: images[0]}
}

// keyChanged reports an update of the primary key. What an image lacks did not change.
func (sh *tableVersion) keyChanged(row *schema.Row) bool {
	for _, i := range sh.table.PrimaryKey {
		before, after := row.Before[i], row.After[i]
		if before == schema.Missing || after == schema.Missing {
			continue
		}
		b, ok := before.([]byte)
		a, _ := after.([]byte)
		if ok && !bytes.Equal(a, b) || !ok && before != after {
			return true
		}
	}
	return false
}

// check compares the event with the table map, and finds the columns that are
// needed and not there.
func (sh *tableVersion) check(h *rowsHead) error {
	if int(h.columns) != len(sh.types) {
		return newError(SchemaMismatch, nil, "a rows event of outbox table %s has %d columns, its table map %d",
			sh.table.Name, h.columns, len(sh.types))
	}
	var missing []string
	for _, i := range sh.needed {
		// Most updates and deletes are passed over later on; whether a column of one is
		// needed is known only then.
		if h.after == nil && !h.deleted && !h.has(i) {
			missing = append(missing, sh.table.Columns[i].Name)
		}
	}
	if missing != nil {
		return newError(MissingColumn, nil, "a row of outbox table %s was logged without the needed columns %s: the "+
			"session that wrote it has binlog_row_image other than FULL",
			sh.table.Name, strings.Join(missing, ", "))
	}
	if h.countPresent() == 0 {
		return errNoColumns
	}
	return nil
}

// parseEvent hands one event to go-mysql. Its errors and panics hold the data
// that they are about, so nothing of them is passed on but that they happened.
func parseEvent(p *replication.BinlogParser, raw []byte) (e *replication.BinlogEvent, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, err = nil, errors.New("the event is not as its type demands")
		}
	}()
	e, err = p.Parse(raw)
	if err != nil {
		return nil, errors.New("the event cannot be decoded")
	}
	return e, nil
}

// plainRows undoes MariaDB's log_bin_compress for a rows event.
func plainRows(raw []byte, idSize int, maxSize int64) ([]byte, error) {
	kind := replication.EventType(raw[4])
	var plainKind replication.EventType
	switch kind {
	case replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:
		plainKind = replication.WRITE_ROWS_EVENTv1
	case replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1:
		plainKind = replication.UPDATE_ROWS_EVENTv1
	case replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		plainKind = replication.DELETE_ROWS_EVENTv1
	default:
		return raw, nil
	}
	h, err := parseRowsHead(kind, raw[headerLen:], idSize)
	if err != nil {
		return nil, err
	}
	prefix := headerLen + h.prefix
	rows, err := inflateMaria(raw[prefix:], maxSize)
	if err != nil {
		return nil, err
	}
	plain := append(bytes.Clone(raw[:prefix]), rows...)
	plain[4] = byte(plainKind)
	return plain, nil
}
