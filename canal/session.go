package canal

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// session is a short-lived connection for metadata.
type session struct {
	conn    *client.Conn
	wire    *conn    // what conn reads
	answers *answers // between the two
	wait    time.Duration
	maria   bool
	plain   bool // TLS was optional, and the server does not offer it
}

// What an answer of a server may have at the most. Its memory is more than its bytes.
const (
	loginBytes  = 1 << 20
	answerBytes = 32 << 20
	// answerTimes is how many times longer than for its first byte an answer may take.
	answerTimes = 6
)

// onHost is withSession on that one of several hosts that would be read from.
func onHost[T any](ctx context.Context, cfg Config, f func(*session) (T, error)) (T, error) {
	cfg = cfg.withDefaults()
	host, err := choose(ctx, cfg, nil)
	if err != nil {
		var none T
		return none, err
	}
	return withSession(ctx, cfg.at(host), f)
}

// withSession runs f on a connection of its own, which is cut when ctx ends.
func withSession[T any](ctx context.Context, cfg Config, f func(*session) (T, error)) (T, error) {
	d := newDialer(cfg.Dialer)
	defer d.close()
	defer context.AfterFunc(ctx, d.close)()
	return onSession(ctx, cfg, d, f)
}

// noTLS is what go-mysql's client says of a server that does not offer TLS.
const noTLS = "does not support TLS"

func onSession[T any](ctx context.Context, cfg Config, d *dialer, f func(*session) (T, error)) (T, error) {
	var none T
	s, err := dial(ctx, cfg, d)
	if err != nil {
		return none, err
	}
	defer s.conn.Quit() //nolint:errcheck // a farewell, so that the server does not log an aborted connection
	v, err := guarded(func() (T, error) { return f(s) })
	if err != nil {
		return none, ctxOr(ctx, err)
	}
	return v, nil
}

// dial opens a connection, without TLS if that is optional and not offered.
func dial(ctx context.Context, cfg Config, d *dialer) (*session, error) {
	s, err := login(ctx, cfg, d, cfg.ConnectTimeout, nil)
	if err != nil && cfg.TLSOptional && cfg.TLS != nil && strings.Contains(err.Error(), noTLS) {
		cfg.TLS = nil
		s, err = login(ctx, cfg, d, cfg.ConnectTimeout, nil)
	}
	if err != nil {
		return nil, ctxOr(ctx, classify(err, Unreachable, "connecting to "+cfg.address()))
	}
	return s, nil
}

// login connects and logs in; silence is how long the server may then say nothing.
func login(ctx context.Context, cfg Config, d *dialer, silence time.Duration,
	attributes map[string]string) (*session, error) {
	s := &session{wait: cfg.ConnectTimeout, plain: cfg.TLSOptional && cfg.TLS == nil}
	open := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.open(ctx, network, address, cfg.ConnectTimeout)
		if err != nil {
			return nil, err
		}
		c.allow(loginBytes, cfg.ConnectTimeout)
		s.wire = c
		return c, nil
	}
	var err error
	s.conn, err = guarded(func() (*client.Conn, error) {
		return client.ConnectWithDialer(ctx, "", cfg.address(), cfg.User, cfg.Password, "", open, func(c *client.Conn) error {
			c.SetTLSConfig(cfg.tls())
			if attributes != nil {
				c.SetAttributes(attributes)
			}
			return nil
		})
	})
	if err != nil {
		if s.wire != nil { // a panic leaves it open
			_ = s.wire.Close()
		}
		return nil, err
	}
	s.wire.read.Store(int64(silence))
	s.answers = watchAnswers(s.conn)
	s.maria = isMariaDB(s.conn.GetServerVersion())
	return s, nil
}

// execute runs a statement. Its answer has bounds: go-mysql keeps all of it.
func (s *session) execute(sql string, args ...any) (*mysql.Result, error) {
	s.wire.allow(answerBytes, answerTimes*s.wait)
	s.answers.kept = true
	defer func() { s.answers.kept = false }()
	return s.conn.Execute(sql, args...)
}

// guarded turns go-mysql's panics over odd packets into errors. What they say may
// hold data.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if recover() != nil {
			err = newError(ServerFailed, nil, "the server at the other end does not follow the protocol")
		}
	}()
	return f()
}

// ctxOr prefers the reason why the context ended to what it broke.
func ctxOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func isMariaDB(version string) bool { return strings.Contains(strings.ToLower(version), "mariadb") }

func (s *session) query(what, sql string, args ...any) (*mysql.Result, error) {
	r, err := s.execute(sql, args...)
	if err != nil {
		return nil, classify(err, Disconnected, "asking the server for "+what)
	}
	if r.Resultset == nil {
		return nil, newError(ServerFailed, nil, "asking the server for %s brought no rows", what)
	}
	return r, nil
}

// inUTF8 is query for what asks for names and texts. The handshake asks for a
// collation that MariaDB need not know, and a server may be told not to listen to
// it: they would come in another character set.
func (s *session) inUTF8(what, sql string, args ...any) (*mysql.Result, error) {
	if _, err := s.execute("SET NAMES utf8mb4"); err != nil {
		return nil, classify(err, Disconnected, "setting the character set to ask the server for "+what)
	}
	return s.query(what, sql, args...)
}

func (s *session) value(what, sql string, args ...any) (string, error) {
	r, err := s.query(what, sql, args...)
	if err != nil {
		return "", err
	}
	if r.RowNumber() == 0 {
		return "", nil
	}
	return text(r, 0, 0), nil
}

func text(r *mysql.Result, row, col int) string {
	v, err := r.GetString(row, col)
	if err != nil {
		return ""
	}
	return strings.Clone(v)
}
