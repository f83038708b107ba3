package canal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// preferredHead is how much longer than another one that would do a host that
// stands before it in the order is waited for.
const preferredHead = time.Second

// askTimes is how many times longer than for one step all questions to one of several
// hosts may take.
const askTimes = 3

// askAgain is how long after its answer a host is asked again while others are awaited.
const askAgain = time.Second

// endpoint is one address at which the source may be.
type endpoint struct {
	name string // as configured, host:port
	host string // for certificates
	port int
	dial string // the address, where the name stands for several
}

func (e endpoint) String() string {
	if e.dial != "" && e.dial != e.name {
		return e.name + " (" + e.dial + ")"
	}
	return e.name
}

// hosts are the configured addresses, host:port, in order.
func (c Config) hosts() []string { return append([]string{c.address()}, c.Others...) }

// endpoints are all addresses at which the source may be: those that are
// configured, and where a name stands for several, each of these. The one that
// was in use comes first.
func (c Config) endpoints(ctx context.Context) []endpoint {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	var all []endpoint
	for _, name := range c.hosts() {
		host, text, err := net.SplitHostPort(name)
		if err != nil {
			continue // Config.validate has refused it
		}
		port, _ := strconv.Atoi(text)
		one := endpoint{name: name, host: host, port: port}
		var addresses []string
		if net.ParseIP(host) == nil {
			addresses, _ = c.Lookup(ctx, host) // connecting will say what is wrong
		}
		if len(addresses) < 2 {
			all = append(all, one)
			continue
		}
		for _, a := range addresses {
			one.dial = net.JoinHostPort(a, text)
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b endpoint) int { return rankOf(a, c.Prefer) - rankOf(b, c.Prefer) })
	return all
}

func rankOf(e endpoint, prefer string) int {
	if prefer != "" && e.String() == prefer {
		return 0
	}
	return 1
}

// at is the configuration for one endpoint.
func (c Config) at(e endpoint) Config {
	c.Host, c.Port, c.Others = e.host, e.port, nil
	if e.dial != "" {
		dial := c.Dialer
		c.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, e.dial) }
	}
	return c
}

// candidate is what asking one endpoint came to.
type candidate struct {
	at    endpoint
	order int
	// answered is false while nothing has come back.
	answered bool
	rank     rank
	err      error
}

// rank says how good a candidate is; the lowest one wins.
type rank int

const (
	rankGood             rank = iota // takes writes and goes on where we are
	rankReplica                      // would do as well, but does not take writes
	rankLostTransactions             // lacks what others have lost, which is accepted
	rankRefused
)

// choose finds the endpoint to read from. suits says whether the server there goes
// on where we are; nil asks nothing but whether it answers. With one endpoint
// nothing is asked here: whoever connects there will see.
func choose(ctx context.Context, cfg Config, suits func(*session, *Server, Config) error) (endpoint, error) {
	all := cfg.endpoints(ctx)
	if len(all) == 1 {
		return all[0], nil
	}
	cfg.progress(fmt.Sprintf("asking %d hosts", len(all)))
	asked := ask(ctx, cfg, all, suits)
	if ctx.Err() != nil {
		return endpoint{}, context.Cause(ctx)
	}
	best := slices.MinFunc(asked, func(a, b candidate) int {
		if a.rank != b.rank {
			return int(a.rank - b.rank)
		}
		return a.order - b.order
	})
	if best.rank == rankRefused {
		return endpoint{}, noHost(asked)
	}
	for _, c := range asked {
		if c.err != nil {
			cfg.Logger.Info("a host of the source is passed over", slog.String("host", c.at.String()),
				slog.String("reason", c.err.Error()))
		}
	}
	return best.at, nil
}

// ask asks all endpoints at the same time: what a dead one would take in time-outs
// is not to be added up. It returns when it is clear which one is the best, or when
// all have answered or given up. While one is awaited the others are asked again: a
// primary that is lost without a word is succeeded by one of them meanwhile.
func ask(ctx context.Context, cfg Config, all []endpoint, suits func(*session, *Server, Config) error) []candidate {
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan candidate)
	var asking sync.WaitGroup
	asked := make([]candidate, len(all))
	for i, e := range all {
		asked[i] = candidate{at: e, order: i, rank: rankRefused, err: newError(Unreachable, nil, "no answer")}
		asking.Go(func() { askOften(ctx, cfg, candidate{at: e, order: i, answered: true}, suits, answers) })
	}
	var head <-chan time.Time
	for waiting := true; waiting; {
		select {
		case c := <-answers:
			asked[c.order] = c
			if c.rank == rankGood && head == nil {
				timer := time.NewTimer(preferredHead)
				defer timer.Stop()
				head = timer.C
			}
			waiting = !settled(asked)
		case <-head:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	cancel()
	asking.Wait()
	return asked
}

// askOften asks one endpoint until its answer is a good one or one that waiting does
// not change.
func askOften(ctx context.Context, cfg Config, c candidate, suits func(*session, *Server, Config) error,
	answers chan<- candidate) {
	for {
		bound, end := context.WithTimeout(ctx, askTimes*cfg.ConnectTimeout)
		c.rank, c.err = rate(bound, cfg.at(c.at), cfg.role(), suits)
		end()
		select {
		case answers <- c:
		case <-ctx.Done():
			return
		}
		var e *Error
		if c.rank == rankGood || errors.As(c.err, &e) && !e.Retryable() {
			return
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return
		}
	}
}

// settled reports whether a good one is there and all before it have answered, or
// else all.
func settled(asked []candidate) bool {
	for _, c := range asked {
		if !c.answered {
			return false
		}
		if c.rank == rankGood {
			return true
		}
	}
	return true
}

// role is what is asked of a server's role when there are several.
type role int

const (
	anyRole role = iota
	preferPrimary
	onlyPrimary
)

// role: hosts that were listed are meant as they stand unless a primary is asked
// for; of the addresses behind one name nobody has said anything.
func (c Config) role() role {
	switch {
	case c.PrimaryOnly:
		return onlyPrimary
	case len(c.Others) == 0:
		return preferPrimary
	}
	return anyRole
}

// rate asks one server.
func rate(ctx context.Context, cfg Config, want role, suits func(*session, *Server, Config) error) (rank, error) {
	r, err := withSession(ctx, cfg, func(s *session) (rank, error) {
		server, err := s.inspect()
		if err != nil {
			return rankRefused, err
		}
		is := rankGood
		if server.ReadOnly != "" && want == onlyPrimary {
			return rankRefused, newError(NoPrimary, nil, "it does not take writes (%s=ON), so it is not the primary",
				server.ReadOnly)
		} else if server.ReadOnly != "" && want == preferPrimary {
			is = rankReplica
		}
		if suits == nil {
			return is, nil
		}
		err = suits(s, server, cfg)
		var e *Error
		if errors.As(err, &e) && e.Kind == LostTransactions && cfg.OnLostTransactions != nil {
			return rankLostTransactions, nil
		}
		return is, err
	})
	if err != nil {
		r = rankRefused
	}
	return r, err
}

// noHost makes one error of those of all hosts. One that waiting does not heal
// decides, since its host answers and would be the one; then the lack of a primary.
func noHost(asked []candidate) error {
	var main *Error
	var reasons []string
	weight := func(e *Error) int {
		switch {
		case e == nil:
			return 0
		case !e.Retryable():
			return 3
		case e.Kind == NoPrimary:
			return 2
		}
		return 1
	}
	for _, c := range asked {
		var e *Error
		if !errors.As(c.err, &e) {
			e = newError(Unreachable, c.err, "asking it")
		}
		if weight(e) > weight(main) {
			main = e
		}
		reasons = append(reasons, c.at.String()+": "+e.Error())
	}
	all := *main
	all.err = nil
	all.msg = "none of the source's hosts can be read from: " + strings.Join(reasons, "; ")
	return &all
}
