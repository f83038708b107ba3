package connector

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/recent"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// Action is what is done about a row that can't be published.
type Action string

// The actions. Stop fails the connector until somebody decides.
const (
	Stop       Action = "stop"
	DeadLetter Action = "dead_letter" // publish it to the dead-letter topic
	Skip       Action = "skip"        // go on without it
)

// Errors is the policy for rows that can't be published. An empty action is Stop.
type Errors struct {
	// Row is for rows that can't be routed or serialised, Record for those whose
	// record Kafka refuses for good.
	Row, Record Action
	// DeadLetterTopic gets the dead letters. It is needed also where the policy does
	// not name them, for an operator may.
	DeadLetterTopic string
}

// RowDecision is the decision, of an operator or the policy, about a single row. It is
// made once and holds for every later session, until the row is behind the position.
type RowDecision struct {
	position.Row
	Action Action // DeadLetter or Skip
	// Cause is the code of the error, Message says what was wrong, without payloads.
	Cause, Message string
	// Reason and By are why and who.
	Reason, By string
	At         time.Time
}

// The headers of dead letters, beside those that the record was routed with. None
// holds anything of the row's payload.
const (
	HeaderErrorCause   = "__binlog_outbox.error.cause"   // code, as in status and metrics
	HeaderErrorMessage = "__binlog_outbox.error.message" // what was wrong, for people
	HeaderErrorGTID    = "__binlog_outbox.error.gtid"    // of the transaction; empty without GTIDs
	// binlog file in which the transaction ends; empty for snapshot rows
	HeaderErrorFile      = "__binlog_outbox.error.file"
	HeaderErrorPos       = "__binlog_outbox.error.pos"       // offset right after it
	HeaderErrorRow       = "__binlog_outbox.error.row"       // number among the transaction's outbox rows, from 1
	HeaderErrorTable     = "__binlog_outbox.error.table"     // database.table
	HeaderErrorConnector = "__binlog_outbox.error.connector" // name of the connector
	HeaderErrorTime      = "__binlog_outbox.error.time"      // when the dead letter was made (RFC 3339, UTC)
	// HeaderErrorSnapshot is the number of a row that stood in its table at the start,
	// among all of them, from 1; only for those.
	HeaderErrorSnapshot = "__binlog_outbox.error.snapshot_row"
	// HeaderErrorTopic is where the record should have gone; only when it was routed.
	HeaderErrorTopic = "__binlog_outbox.error.topic"
	// HeaderErrorOmitted is "value,headers" on a dead letter without them, since they
	// are too large for its topic.
	HeaderErrorOmitted = "__binlog_outbox.error.omitted"
)

// maxBareKey is the largest key that a dead letter without value keeps, in bytes.
const maxBareKey = 4 << 10

// unpublishedRow is a row of a batch that is skipped or dead-lettered.
type unpublishedRow struct {
	row            position.Row
	action         Action
	cause, message string
	table          string
	group          int // index of the transaction in Batch.Groups
	record         int // index of the dead letter in the group's Records; -1 when it is skipped
	size           int // of the dead letter in bytes
	bare           bool
	id             recent.ID // of the event; 0 when it is not remembered
}

// errorHandler skips or dead-letters rows: it belongs to the reader of a session. A nil *setter sets
// nothing.
type errorHandler struct {
	name    string
	policy  Errors
	decided map[position.Row]RowDecision
	// check returns why a record can never be published.
	check func(*txn.Record) error
	enc   Encoder
	// refused is the size of the smallest dead letter that its topic has refused, in
	// bytes; 0 when it has taken all.
	refused int
	now     func() time.Time
}

// look returns what is to be done about a row that was encoded to rec, or could not
// be for the reason err; a is nil when the record is to be published. An error is
// returned when nothing may be done but to stop.
func (s *errorHandler) look(row position.Row, rec *txn.Record, err error) (a *unpublishedRow, _ error) {
	if s == nil {
		return nil, err
	}
	d, decided := s.decided[row]
	action := d.Action
	if err == nil && (decided || s.policy.Record.sets()) {
		if err = s.check(rec); err != nil && !decided {
			action = s.policy.Record
		}
	} else if !decided {
		action = s.policy.Row
	}
	switch {
	case err == nil && !decided:
		return nil, nil
	case !action.sets():
		return nil, err
	case err == nil:
		return &unpublishedRow{row: row, action: action, cause: d.Cause, message: d.Message}, nil
	}
	reason := err
	var refused *RowError
	if errors.As(err, &refused) {
		reason = refused.Err
	}
	return &unpublishedRow{row: row, action: action, cause: code(err), message: reason.Error()}, nil
}

func (a Action) sets() bool { return a == DeadLetter || a == Skip }

// deadLetter makes the dead letter of a row. rec is its record if it was routed, and has
// no topic otherwise.
func (s *errorHandler) deadLetter(a *unpublishedRow, tx *txn.Transaction, row *schema.Row,
	rec txn.Record) (txn.Record, error) {
	out := txn.Record{Topic: s.policy.DeadLetterTopic, Partition: -1, Timestamp: -1, Key: rec.Key, Value: rec.Value,
		Headers: slices.Clip(rec.Headers)}
	if rec.Topic == "" {
		out.Key, out.Value = s.enc.RawFallback(row)
	}
	headers := s.headers(a, tx, rec.Topic)
	out.Headers = append(out.Headers, headers...)
	a.size = deadLetterSize(&out)
	err := s.check(&out)
	if err != nil || s.refused > 0 && a.size >= s.refused {
		a.bare = true
		out.Value = nil
		out.Headers = append(headers, txn.Header{Key: HeaderErrorOmitted, Value: []byte("value,headers")})
		if len(out.Key) > maxBareKey {
			out.Key = nil
		}
		a.size = deadLetterSize(&out)
		err = s.check(&out)
	}
	if err != nil {
		return out, &DeadLetterError{Row: a.row, Cause: a.cause, Topic: out.Topic, Bare: true, Err: err}
	}
	return out, nil
}

func (s *errorHandler) headers(a *unpublishedRow, tx *txn.Transaction, topic string) []txn.Header {
	text := func(key, value string) txn.Header { return txn.Header{Key: key, Value: []byte(value)} }
	out := []txn.Header{
		text(HeaderErrorCause, a.cause), text(HeaderErrorMessage, a.message),
		text(HeaderErrorGTID, tx.Commit.GTID.String()), text(HeaderErrorFile, tx.Commit.File),
		text(HeaderErrorPos, strconv.FormatUint(tx.Commit.Pos, 10)),
		text(HeaderErrorRow, strconv.FormatUint(a.row.N+1, 10)), text(HeaderErrorTable, a.table),
		text(HeaderErrorConnector, s.name), text(HeaderErrorTime, s.now().UTC().Format("2006-01-02T15:04:05.000Z07:00")),
	}
	if a.row.IsSnapshot() {
		out = append(out, text(HeaderErrorSnapshot, strconv.FormatUint(a.row.Snapshot.Number, 10)))
	}
	if topic != "" {
		out = append(out, text(HeaderErrorTopic, topic))
	}
	return out
}

// deadLetterSize is what dead letters are compared by; it leaves the overhead out.
func deadLetterSize(r *txn.Record) int {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// addUnpublished puts a row into the batch as what a says. rec is its record if it was
// routed.
func (b *batch) addUnpublished(p *pipe, a *unpublishedRow, tx *txn.Transaction, i int, g *txn.Group,
	rec txn.Record) error {
	if t := tx.Rows[i].Table; t != nil {
		a.table = t.Name.String()
	}
	a.group, a.record = b.at(), -1
	if p.ids != nil {
		a.id = p.ids.of(&tx.Rows[i])
	}
	if a.action == Skip {
		g.Skipped++
		p.sequence.skip()
		b.unpublished = append(b.unpublished, *a)
		return nil
	}
	deadLetter, err := p.onError.deadLetter(a, tx, &tx.Rows[i], rec)
	if err != nil {
		return err
	}
	a.record = len(g.Records)
	b.deadLetters += a.size
	b.unpublished = append(b.unpublished, *a)
	b.append(p, tx, a.row.N, g, deadLetter) // it is not the event
	return nil
}

// deadLetterAt returns the dead letter that is a record of a group, or nil.
func (b *batch) deadLetterAt(group, record int) *unpublishedRow {
	i := slices.IndexFunc(b.unpublished, func(a unpublishedRow) bool { return a.group == group && a.record == record })
	if i < 0 {
		return nil
	}
	return &b.unpublished[i]
}

// DeadLetterError is returned when the dead letter of a row can't be published for
// good. Bare says that it was tried without its value and headers.
type DeadLetterError struct {
	Row   position.Row
	Cause string // why the row is skipped or dead-lettered
	Topic string
	Size  int // of the refused dead letter, in bytes
	Bare  bool
	// Commit and Index are as in RecordError, when it was Kafka that refused it.
	Commit position.Commit
	Index  int
	Err    error
}

func (e *DeadLetterError) Error() string {
	return fmt.Sprintf("dead-lettering outbox row %d of %s (%s): its dead letter is refused; correct the topic %q, or "+
		"decide to skip the row: %v",
		e.Row.N+1, transactionOf(e.Row), e.Cause, e.Topic, e.Err)
}

func (e *DeadLetterError) Unwrap() error { return e.Err }

// Retryable is false: the same dead letter is refused again.
func (e *DeadLetterError) Retryable() bool { return false }

// ErrCode is the code for status and metrics.
func (e *DeadLetterError) ErrCode() string { return "dead_letter_refused" }
