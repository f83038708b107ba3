// Command demo shows the whole thing at work with real servers: a shop that writes
// orders and outbox rows in one MySQL transaction, the connector, the records as
// they arrive in Kafka, a kill -9 half-way, and the count at the end.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

const (
	orders   = 200 // written by the shop, one outbox row each
	shown    = 3   // printed in full
	interval = 25 * time.Millisecond
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "binlog-outbox-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(out, "\nlogs are in", dir)
		}
	}()
	say := func(format string, args ...any) { fmt.Fprintf(out, "\n== "+format+"\n", args...) }

	say("building the connector")
	binary := filepath.Join(dir, "binlog-outbox")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/binlog-outbox")
	build.Stdout, build.Stderr = out, out
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the connector: %w", err)
	}
	say("starting MySQL and Kafka (the first time they are fetched into your cache)")
	mysql, err := servers.StartMySQL(ctx, servers.Options{Log: out})
	if err != nil {
		return fmt.Errorf("starting MySQL: %w", err)
	}
	defer mysql.Close()
	broker, closeKafka, err := startKafka(ctx, out)
	if err != nil {
		return err
	}
	defer closeKafka()
	fmt.Fprintf(out, "MySQL %s, Kafka %s\n", mysql.Addr(), broker)

	s, err := newShop(ctx, mysql)
	if err != nil {
		return err
	}
	c := &process{binary: binary, config: filepath.Join(dir, "binlog-outbox.yaml"),
		log: filepath.Join(dir, "connector.log")}
	if err := writeConfig(c.config, dir, mysql, broker); err != nil {
		return err
	}
	say("starting the connector with this configuration")
	text, err := os.ReadFile(c.config)
	if err != nil {
		return err
	}
	fmt.Fprint(out, string(text))
	if err := c.start(ctx); err != nil {
		return err
	}
	defer c.kill()

	r, err := newReader(ctx, broker)
	if err != nil {
		return err
	}
	defer r.close()

	say("the shop takes orders; each is an order row and an outbox row in one transaction")
	if err := s.takeOrders(ctx, orders/2, out, r); err != nil {
		return err
	}
	say("kill -9 of the connector while the shop goes on")
	c.kill()
	if err := s.takeOrders(ctx, orders/4, nil, nil); err != nil {
		return err
	}
	say("starting it again")
	if err := c.start(ctx); err != nil {
		return err
	}
	if err := s.takeOrders(ctx, orders-orders/2-orders/4, nil, nil); err != nil {
		return err
	}
	r.waitFor(ctx, s.written, 60*time.Second)
	return r.count(out, s.written)
}

// startKafka starts a real broker, or the embedded fake where none can be had.
func startKafka(ctx context.Context, out io.Writer) (addr string, closeIt func(), err error) {
	k, err := servers.StartKafka(ctx, servers.KafkaOptions{Log: out})
	if err == nil {
		return k.Addr(), func() { _ = k.Close() }, nil
	}
	if ctx.Err() != nil {
		return "", nil, err
	}
	fmt.Fprintf(out, "No real Kafka can be had here (%v).\nThe demo goes on with an embedded FAKE broker, which keeps "+
		"nothing on disk.\n", err)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return "", nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	return fake.ListenAddrs()[0], fake.Close, nil
}
