package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"time"
)

const loopback = "127.0.0.1"

// Ports are taken below the range that systems use for outgoing connections, so
// that none of those takes a server's port while it is down for a restart.
const (
	lowestPort  = 20000
	highestPort = 31999
)

// port is a loopback port that is ours until release, also while nothing listens.
type port struct {
	number int
	lock   *fileLock
}

func addr(number int) string { return net.JoinHostPort(loopback, strconv.Itoa(number)) }

// reservePort takes the wanted port or, when that is 0, any free one.
func reservePort(ctx context.Context, wanted int) (*port, error) {
	if wanted != 0 {
		return tryPort(ctx, wanted)
	}
	var err error
	for range 200 {
		var p *port
		if p, err = tryPort(ctx, lowestPort+rand.IntN(highestPort-lowestPort+1)); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("looking for a free port: %w", err)
}

func tryPort(ctx context.Context, number int) (*port, error) {
	l, err := tryLock(filepath.Join(tempBase(), "ports", strconv.Itoa(number)))
	if err != nil {
		return nil, err
	}
	if err := bindable(ctx, number); err != nil {
		l.unlock()
		return nil, err
	}
	return &port{number: number, lock: l}, nil
}

func bindable(ctx context.Context, number int) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr(number))
	if err != nil {
		return err
	}
	return listener.Close()
}

func (p *port) release() { p.lock.unlock() }

// errEnded is poll's answer when the program ended by itself.
var errEnded = errors.New("the server has ended")

// poll calls try until it succeeds, ctx ends or done is closed.
func poll(ctx context.Context, every time.Duration, done <-chan struct{}, try func(context.Context) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
