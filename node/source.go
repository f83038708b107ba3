package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/router"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

// sources opens the binlog of one connector. Secrets and certificates are read
// again for each connection.
type sources struct {
	node  *config.Config
	dial  dialer // nil for the machine's network
	cfg   *config.Connector
	canal canal.Config
	route *router.Encoder
	// checked is set when the tables were found in order. DDL later is the stream's
	// business, which knows the shape of each row.
	checked bool
	// patterns is set when tables are named by patterns, too.
	patterns bool
	// decisions is nil where nothing can be recorded, as for a probe.
	decisions connector.Decisions
	// address is the host of the last stream, step what an opening is at. Open is
	// called by one goroutine at a time; step is read by others.
	address string
	step    atomic.Pointer[string]
}

// invalidText is nil where text is taken as the server has it, and what is not valid stops
// the connector.
func invalidText(c *config.Connector, reg prometheus.Registerer) *schema.InvalidText {
	p := &schema.InvalidText{AsJava: c.Source.InvalidText == config.InvalidTextReplace, Quirks: c.Debezium.Quirks}
	if c.Source.InvalidText == config.InvalidTextStop {
		if !p.Quirks {
			return nil
		}
		p.Refuse = true
	}
	if reg != nil {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "binlog_outbox_invalid_texts_total",
			Help: "Texts of outbox rows read with bytes replaced that are not valid in their character set.",
		}, func() float64 { return float64(p.Replaced()) }))
	}
	return p
}

// surroundings are what a connector's sources and sinks work in.
type surroundings struct {
	metrics prometheus.Registerer // nil for none
	log     *slog.Logger
	dial    dialer // nil for the machine's network
}

func newSources(node *config.Config, c *config.Connector, route *router.Encoder, in surroundings) (*sources, error) {
	tables, err := c.Source.Tables()
	if err != nil {
		return nil, err
	}
	id := c.Source.ServerID
	if id == 0 {
		id = config.DerivedServerID(node.Node.ID, c.Name)
	}
	host, port, others := hosts(&c.Source)
	base := canal.Config{
		Host: host, Port: port, Others: others, PrimaryOnly: c.Source.PrimaryOnly && len(others) > 0,
		User: c.Source.User, ServerID: id,
		Tables:               canal.Tables{Match: tables.Match, List: tableNames(tables)},
		Needed:               route.Columns,
		InvalidText:          invalidText(c, in.metrics),
		Updates:              !c.Outbox.Skips("u"),
		RefusePartialUpdates: !c.Outbox.Skips("u") && c.Outbox.OnUpdate == router.UpdateFatal,
		SnapshotOnly:         c.Source.Start == config.StartSnapshotOnly,
		Heartbeat:            c.Source.Heartbeat, ConnectTimeout: c.Source.ConnectTimeout,
		QueueBytes:     int(c.Limits.QueueBytes),
		SpoolThreshold: int64(c.Limits.TransactionBytes),
		SpoolDir:       filepath.Join(node.Node.DataDir, "spool", c.Name),
		PartRows:       c.Limits.TransactionRows,
		Logger:         in.log.With("component", "canal"),
		Metrics:        canal.NewMetrics(in.metrics),
		Dialer:         in.dial,
	}
	if c.Source.Flavor != config.FlavorAuto {
		base.Flavor = position.Flavor(c.Source.Flavor)
	}
	origins, err := c.Source.Origins()
	if err != nil {
		return nil, err
	}
	if origins != nil {
		base.Origins = func(id uuid.UUID) (bool, error) { return origins(id.String()) }
	}
	s := &sources{node: node, dial: in.dial, cfg: c, route: route, patterns: tables.HasPatterns()}
	base.Progress = func(step string) { s.step.Store(&step) }
	s.canal = base
	return s, nil
}

// hosts are the first address and the others.
func hosts(c *config.Source) (host string, port int, others []string) {
	all := c.Addresses()
	if len(all) == 0 {
		return c.Host, c.Port, nil // validation has refused it
	}
	host, text, err := net.SplitHostPort(all[0])
	if err != nil {
		return c.Host, c.Port, nil
	}
	port, _ = strconv.Atoi(text)
	return host, port, all[1:]
}

func tableNames(t *config.Tables) []schema.Name {
	var names []schema.Name
	for _, n := range t.Names() {
		names = append(names, schema.Name{Database: n.Database, Table: n.Table})
	}
	return names
}

// connect returns the configuration with what is read anew for each connection.
func (s *sources) connect() (canal.Config, error) {
	c := s.canal
	password, err := s.cfg.Source.Password.Resolve()
	if err != nil {
		return c, fmt.Errorf("reading source.password: %w", err)
	}
	c.Password = password
	c.TLSOptional = s.cfg.Source.TLS.Mode == config.SSLPreferred
	c.TLS, err = sourceTLS(&s.cfg.Source)
	if c.TLS != nil && len(c.Others) > 0 {
		c.TLS.ServerName = s.cfg.Source.TLS.ServerName // else each host's own
	}
	return c, err
}

// Opening says what Open is at.
func (s *sources) Opening() string {
	if step := s.step.Load(); step != nil {
		return *step
	}
	return ""
}

// Open begins right after from.
func (s *sources) Open(ctx context.Context, from position.Position) (connector.Source, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	c.Prefer = s.address
	if err := s.decided(&c); err != nil {
		return nil, err
	}
	// A connector that has published knows that they were in order, and a take-over
	// should not wait for one more connection.
	if !s.checked && from.Seq == 0 {
		if err := s.checkTables(ctx, c); err != nil {
			return nil, err
		}
		s.checked = true
	}
	stream, err := s.open(ctx, c, from)
	if err != nil {
		return nil, err
	}
	if at := stream.Status().Address; at != "" {
		s.address = at
	}
	return stream, nil
}

// open takes care that no typed nil gets into the interface.
func (s *sources) open(ctx context.Context, c canal.Config, from position.Position) (connector.Source, error) {
	if from.Snapshot != nil || c.SnapshotOnly {
		stream, err := canal.OpenSnapshot(ctx, c, from)
		if err != nil {
			return nil, s.anew(err)
		}
		return stream, nil
	}
	stream, err := canal.Open(ctx, c, from)
	if err != nil {
		return nil, s.anew(err)
	}
	return stream, nil
}

// SourceStatus asks the source how far it has come.
func (s *sources) PollStatus(ctx context.Context, address string) (*canal.SourceStatus, error) {
	c, err := s.connect()
	if err != nil {
		return nil, err
	}
	c.Progress = nil // it tells of openings
	return canal.PollStatus(ctx, c, address)
}

// anew marks the error that is to be answered with a new beginning.
func (s *sources) anew(err error) error {
	var e *canal.Error
	if s.cfg.Source.Start == config.StartWhenNeeded && errors.As(err, &e) && e.Kind == canal.Purged {
		return &connector.BeginAnew{Err: err}
	}
	return err
}

// decided adds what was and may be decided about transactions that are lost.
func (s *sources) decided(c *canal.Config) error {
	if s.decisions == nil {
		return nil
	}
	var err error
	if c.Accepted, err = s.decisions.AcceptedLostTransactions(); err != nil {
		return err
	}
	if s.cfg.Source.LostTransactions == config.LostTransactionsAccept {
		c.OnLostTransactions = s.decisions.AcceptLostTransactions
	}
	return nil
}

// checkTables looks whether the outbox tables are there and have the columns that
// the configuration names, so that it is known before the first row. What is
// missing is waited for.
func (s *sources) checkTables(ctx context.Context, c canal.Config) error {
	for _, name := range c.Tables.List {
		columns, err := canal.Columns(ctx, c, name)
		if err != nil {
			return err
		}
		if len(columns) == 0 {
			if name, columns, err = otherSpelling(ctx, c, name); err != nil {
				return err
			}
		}
		if len(columns) == 0 {
			return &tableError{"missing_table", fmt.Errorf("outbox table %s does not exist, or user %s may not see it: create "+
				"it, or grant SELECT on it", name, c.User)}
		}
		t, err := schema.FromInformationSchema(name, columns)
		if err != nil {
			return err
		}
		if err := s.route.Check(t); err != nil {
			return &tableError{"missing_column", err}
		}
	}
	if !s.patterns || len(c.Tables.List) > 0 {
		return nil
	}
	// Patterns may be for tables to come. But if they match nothing at all, nobody
	// would ever see why nothing is published.
	if names, err := canal.Matching(ctx, c); err != nil || len(names) > 0 {
		return err
	}
	return &tableError{"missing_table", fmt.Errorf("no table matches source.table_patterns, or user %s may not see it: "+
		"a pattern is held against the whole of database.table; create the table, or grant SELECT on it", c.User)}
}

// otherSpelling returns the columns of a table whose name was given in another case
// than the server's.
func otherSpelling(ctx context.Context, c canal.Config, name schema.Name) (schema.Name, []schema.ColumnInfo, error) {
	spelled, ok, err := canal.Spelling(ctx, c, name)
	if err != nil || !ok {
		return name, nil, err
	}
	columns, err := canal.Columns(ctx, c, spelled)
	return spelled, columns, err
}

// tableError is an outbox table that is not (yet) as the configuration says.
type tableError struct {
	code string
	err  error
}

func (e *tableError) Error() string   { return e.err.Error() }
func (e *tableError) Unwrap() error   { return e.err }
func (e *tableError) ErrCode() string { return e.code }
func (*tableError) Retryable() bool   { return true }

// Start returns where a connector without a position begins: where Debezium has stopped, if
// it has read for this connector, else as source.start says.
func (s *sources) Start(ctx context.Context) (position.Position, error) {
	if from, err := s.inherited(ctx); from != nil || err != nil {
		return *cmp.Or(from, &position.Position{}), err
	}
	return s.begin(ctx, s.cfg.Source.Start)
}

// begin returns the place in the binlog that start stands for, as the connector goes by it.
func (s *sources) begin(ctx context.Context, start config.Start) (position.Position, error) {
	c, err := s.connect()
	if err != nil {
		return position.Position{}, err
	}
	var at position.Position
	switch {
	case start.WithRows():
		at, err = canal.CurrentPosition(ctx, c)
		at.Snapshot = &position.Snapshot{Begun: uint64(time.Now().UnixMicro())}
	case start == config.StartCurrent:
		at, err = canal.CurrentPosition(ctx, c)
	case start == config.StartEarliest:
		at, err = canal.EarliestPosition(ctx, c)
	default:
		return at, &startError{start}
	}
	if err != nil {
		return at, err
	}
	switch {
	case s.cfg.Source.Positions == config.PositionsGTID && at.Set == nil:
		return at, &modeError{c.Host, c.Port}
	case s.cfg.Source.Positions == config.PositionsFile:
		at.Set = nil
	}
	return at, nil
}

// startError is a connector that may not begin by itself.
type startError struct{ start config.Start }

func (e *startError) Error() string {
	return fmt.Sprintf("there is no stored position and source.start is %s: set a position, or set source.start to "+
		"snapshot, current or earliest", e.start)
}
func (*startError) Retryable() bool { return false }
func (*startError) ErrCode() string { return "no_position" }

// modeError is a server without the GTIDs that the configuration insists on.
type modeError struct {
	host string
	port int
}

func (e *modeError) Error() string {
	return fmt.Sprintf("source.positions is gtid, but %s:%d has gtid_mode=OFF: switch GTIDs on there, or set "+
		"source.positions to auto or file", e.host, e.port)
}
func (*modeError) Retryable() bool { return false }
func (*modeError) ErrCode() string { return "gtid_off" }
