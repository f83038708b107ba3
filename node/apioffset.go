package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/txn"
)

// offsetTimeout bounds what is asked of the source; a time is looked for in all
// binlogs before it.
const offsetTimeout = 90 * time.Second

// Offset implements admin.Control.
func (a *api) Offset(name string) (admin.Offset, error) {
	if _, err := a.instance(name); err != nil {
		return admin.Offset{}, err
	}
	st, _ := a.store.Connector(name)
	o := admin.Offset{Connector: name, Found: !st.Position.IsZero(), Position: shownPosition(st.Position)}
	if n := st.Position.OffsetOverride; n > 0 {
		at := time.UnixMicro(int64(n)).UTC()
		o.OffsetOverride = &at
	}
	return o, nil
}

// SetOffset implements admin.Control.
func (a *api) SetOffset(ctx context.Context, name string, request admin.OffsetRequest,
	by admin.Actor) (admin.OffsetChange, error) {
	r, err := a.instance(name)
	if err != nil {
		return admin.OffsetChange{}, err
	}
	st, _ := a.store.Connector(name)
	if r.config == nil && !request.Reset {
		return admin.OffsetChange{}, invalid("connector %s can't be built from its configuration, so its source can't be "+
			"asked: %s", name, r.connector.Status().LastError.Message)
	}
	if st.RunState.State != ha.Stopped {
		return admin.OffsetChange{}, rejection(&ha.RejectedError{
			Connector: name, Reason: ha.ReasonNotStopped, Message: "its position may be set while it is stopped; stop it first",
		})
	}
	ctx, cancel := context.WithTimeout(ctx, offsetTimeout)
	defer cancel()
	change := admin.OffsetChange{Connector: name, DryRun: request.DryRun, Reset: request.Reset,
		Before: shownPosition(st.Position)}
	var to position.Position
	if !request.Reset {
		if to, err = a.resolve(ctx, r, request, st.Position, &change); err != nil {
			return admin.OffsetChange{}, err
		}
	}
	to.Seq = st.SeqAfterOverride() // for the answer: the store counts on by itself
	change.After = shownPosition(to)
	compare(&change, st.Position, to)
	if request.DryRun {
		return change, nil
	}
	store, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	to.Seq = 0
	return change, problem(a.store.SetPosition(store, name, to, by.Reason, by.By))
}

// resolve turns what an operator says into a position.
func (a *api) resolve(ctx context.Context, r *instance, request admin.OffsetRequest, before position.Position,
	change *admin.OffsetChange) (position.Position, error) {
	ways := 0
	for _, given := range []bool{request.GTIDSet != "", request.File != "" || request.Pos != 0, request.At != "",
		request.Debezium != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		return position.Position{}, invalid("give one of gtid_set, file with pos, at, and debezium")
	}
	look, err := a.observe(r, "offset")
	if err != nil {
		return position.Position{}, unveiled(r.config, err)
	}
	by := offsetChooser{look}
	switch {
	case request.GTIDSet != "":
		return by.set(ctx, request.GTIDSet, before, change)
	case request.At != "":
		return by.time(ctx, request.At)
	case request.Debezium != nil:
		return by.debezium(ctx, request.Debezium, change)
	default:
		return by.file(ctx, request.File, request.Pos, before)
	}
}

// observe makes an observer of a connector's source.
func (a *api) observe(r *instance, purpose string) (*observer, error) {
	return observe(a.cfg, r.config, purpose, a.dial)
}

// offsetChooser finds positions at a connector's source.
type offsetChooser struct {
	look *observer
}

func (o offsetChooser) place(ctx context.Context, start config.Start) (position.Position, error) {
	at, err := o.look.begin(ctx, start)
	if err != nil {
		return at, unavailable(o.look.cfg, err)
	}
	return at, nil
}

func unavailable(c *config.Connector, err error) error {
	return &admin.Problem{Status: http.StatusBadGateway, Code: admin.CodeSourceUnavailable,
		Detail: "asking the source: " + c.Veil(err.Error())}
}

// set takes a GTID set. The server is asked for its identity and what it has, but
// need not answer: a position may be set while it is away.
func (o offsetChooser) set(ctx context.Context, text string, before position.Position,
	change *admin.OffsetChange) (position.Position, error) {
	now, err := o.place(ctx, config.StartCurrent)
	if err != nil {
		change.Notes = append(change.Notes, fmt.Sprintf("the source did not answer, so whether it has these transactions "+
			"is not known (%v)", err))
		now = before
	}
	to := position.Position{Flavor: flavorOf(now, o.look.cfg)}
	if to.Set, err = position.ParseSet(to.Flavor, text); err != nil {
		return to, invalid("gtid_set: %v", err)
	}
	switch {
	case to.Set.IsEmpty():
		return to, invalid("gtid_set is empty; to begin with the oldest binlog, use at: earliest")
	case !now.IsZero() && now.Set == nil:
		return to, invalid("this connector goes by file and offset (the source has no GTIDs, or source.positions is file): " +
			"give file and pos")
	case now.Set != nil && !now.Set.Contains(to.Set):
		change.Notes = append(change.Notes, fmt.Sprintf("the source has not %s: the connector would stop with that",
			clip(to.Set.Subtract(now.Set).String())))
	}
	return to, nil
}

func flavorOf(p position.Position, c *config.Connector) position.Flavor {
	switch {
	case p.Flavor != "":
		return p.Flavor
	case c.Source.Flavor == config.FlavorMariaDB:
		return position.MariaDB
	default:
		return position.MySQL
	}
}

// file takes a file and an offset, which mean something on one server only.
func (o offsetChooser) file(ctx context.Context, file string, pos uint64,
	before position.Position) (position.Position, error) {
	if file == "" || pos < 4 {
		return position.Position{}, invalid("file and pos go together, and pos is at least 4")
	}
	if _, err := position.CompareFiles(file, file); err != nil {
		return position.Position{}, invalid("file: %v", err)
	}
	now, err := o.place(ctx, config.StartCurrent)
	switch {
	case err != nil && (before.IsZero() || before.Set != nil):
		return position.Position{}, err // whose file it is can't be known
	case err != nil:
		now = before
	}
	if now.Set != nil {
		return position.Position{}, invalid("this connector goes by GTID, and a file and offset would not follow a " +
			"failover: give gtid_set, or at with a time")
	}
	return position.Position{Flavor: now.Flavor, Server: now.Server, File: file, Pos: pos}, nil
}

// debezium takes what Debezium has stored. The server must answer: whether it has what the
// offset says decides.
func (o offsetChooser) debezium(ctx context.Context, given *admin.DebeziumOffset,
	change *admin.OffsetChange) (position.Position, error) {
	stored := given.Offset
	if given.Topic != "" {
		kc, err := kafkaConfig(o.look.node, o.look.cfg)
		if err != nil {
			return position.Position{}, unveiled(o.look.cfg, err)
		}
		kc.Dialer = o.look.dial
		if stored, err = storedIn(ctx, kc, given.Topic, cmp.Or(given.Name, o.look.cfg.Name)); err != nil {
			return position.Position{}, invalid("%s", o.look.cfg.Veil(err.Error()))
		}
	}
	at, err := offset.Parse(stored)
	if err != nil {
		return position.Position{}, invalid("%v", &offsetError{err})
	}
	found, err := o.look.adopt(ctx, at, given.Config)
	if refused, ok := errors.AsType[*offsetError](err); ok {
		return position.Position{}, invalid("%s", o.look.cfg.Veil(refused.Error()))
	}
	if err != nil {
		return position.Position{}, unavailable(o.look.cfg, err)
	}
	change.Notes = append(change.Notes, found.notes...)
	return found.to, nil
}

// time takes now, earliest, or a time: the last place before which everything was
// committed earlier.
func (o offsetChooser) time(ctx context.Context, text string) (position.Position, error) {
	switch text {
	case "now":
		return o.place(ctx, config.StartCurrent)
	case "earliest":
		return o.place(ctx, config.StartEarliest)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return position.Position{}, invalid("at: %q is not now, earliest or a time like 2026-01-02T15:04:05Z", text)
	}
	to, err := o.place(ctx, config.StartEarliest)
	if err != nil {
		return to, err
	}
	end, err := o.place(ctx, config.StartCurrent)
	if err != nil {
		return to, err
	}
	if !to.Covers(end) {
		// Runs of transactions without outbox rows are one commit position: the place before one
		// loses nothing.
		to, err = o.look.scan(ctx, to, end, func(tx *txn.Transaction, _ canal.Status) (more bool, _ error) {
			return tx.Commit.Committed.Before(at), nil
		})
		if err != nil {
			return to, unavailable(o.look.cfg, err)
		}
	}
	to.Last, to.Committed = position.GTID{}, time.Time{}
	return to, nil
}

// compare says what lies between two positions.
func compare(c *admin.OffsetChange, before, after position.Position) {
	switch {
	case c.Reset:
		c.Notes = append(c.Notes, "the connector begins as a new one, by its source.start, when it runs again")
	case before.Set != nil && after.Set != nil && before.Flavor == after.Flavor:
		repeated, skipped := before.Set.Beyond(after.Set), after.Set.Beyond(before.Set)
		c.Repeated, c.Skipped = &repeated, &skipped
		for i := range before.Partials {
			part := &before.Partials[i]
			c.Notes = append(c.Notes, fmt.Sprintf("of %s %d rows were published too, and come again", part.GTID, part.Total()))
		}
	case before.IsZero():
		c.Notes = append(c.Notes, "nothing was published so far, as far as the cluster knows")
	default:
		c.Notes = append(c.Notes, fileNote(before, after))
	}
}

// fileNote says what can be said without counting.
func fileNote(before, after position.Position) string {
	if before.Set != nil || after.Set != nil {
		return "the two positions are of different kinds (GTID set; file and offset), so what lies between them is not known"
	}
	if before.Server != after.Server {
		return "the two positions are of different servers, so what lies between them is not known"
	}
	order, err := position.CompareFiles(after.File, before.File)
	switch {
	case err != nil:
		return "the two positions are not of one history: " + err.Error()
	case order == 0 && after.Pos == before.Pos:
		return "the two positions are the same"
	case order < 0 || order == 0 && after.Pos < before.Pos:
		return between("back: what lies between comes again", order, before, after)
	default:
		return between("forward: what lies between is passed over", order, before, after)
	}
}

func between(what string, order int, before, after position.Position) string {
	if order == 0 {
		return fmt.Sprintf("%s (%d bytes of one file; how many transactions is not known)", what,
			max(before.Pos, after.Pos)-min(before.Pos, after.Pos))
	}
	return what + " (in several files; how many transactions is not known)"
}

func clip(s string) string {
	const most = 400
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
