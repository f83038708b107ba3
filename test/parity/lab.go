package parity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Lab is a MySQL server and a Kafka broker for one run of the corpus.
type Lab struct {
	MySQL *servers.MySQL
	Kafka *servers.Kafka
	// Dir is for files that connectors read.
	Dir string
	// Began is when the run began: no record of it is older.
	Began time.Time
}

// MySQLOptions start the server that a Lab needs: room for a connection or two of
// each connector.
func MySQLOptions() servers.Options {
	return servers.Options{Args: []string{"--max-connections=2000", "--binlog-row-metadata=FULL",
		"--max-allowed-packet=64M"}}
}

// KafkaOptions start the broker that a Lab needs: records with old timestamps stay.
func KafkaOptions() servers.KafkaOptions {
	return servers.KafkaOptions{Properties: []string{"log.retention.ms=-1"}}
}

// Server is the account of the connectors.
func (l *Lab) Server() Server {
	return Server{Host: l.MySQL.Host(), Port: l.MySQL.Port(), User: servers.CDCUser, Password: servers.CDCPassword}
}

const secretsFile = "secrets.properties"

// Prepare makes the databases of the cases and runs their set-up.
func (l *Lab) Prepare(ctx context.Context, cases []*Case) error {
	if err := l.MySQL.CreateCDCUser(ctx); err != nil {
		return err
	}
	// What Debezium asks for at its start, beyond what we need.
	if err := l.MySQL.Exec(ctx,
		"GRANT RELOAD, SHOW DATABASES, LOCK TABLES ON *.* TO "+servers.CDCUser+"@'%'"); err != nil {
		return err
	}
	secret := "mysql.password=" + servers.CDCPassword + "\n"
	if err := os.WriteFile(filepath.Join(l.Dir, secretsFile), []byte(secret), 0o600); err != nil {
		return err
	}
	return l.each(ctx, cases, 4, func(ctx context.Context, c *Case) error {
		name := "`" + c.DatabaseName() + "`"
		return l.exec(ctx, c, append([]string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name, "USE " + name},
			c.Setup...))
	})
}

// Do runs the statements of the cases, each case on a connection of its own.
func (l *Lab) Do(ctx context.Context, cases []*Case) error {
	return l.each(ctx, cases, 8, func(ctx context.Context, c *Case) error {
		return l.exec(ctx, c, append([]string{"USE `" + c.DatabaseName() + "`"}, c.Do...))
	})
}

func (l *Lab) each(ctx context.Context, cases []*Case, n int, f func(context.Context, *Case) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(n)
	for _, c := range cases {
		g.Go(func() error {
			if err := f(ctx, c); err != nil {
				return fmt.Errorf("case %q: %w", c.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (l *Lab) exec(ctx context.Context, c *Case, statements []string) error {
	all := []string{"SET NAMES utf8mb4", "SET time_zone = '+00:00'"}
	for _, s := range statements {
		all = append(all, c.fill(s, l.Dir))
	}
	return l.MySQL.Exec(ctx, all...)
}

// Drop removes the databases of the cases.
func (l *Lab) Drop(ctx context.Context, cases []*Case) error {
	return l.each(ctx, cases, 4, func(ctx context.Context, c *Case) error {
		return l.MySQL.Exec(ctx, "DROP DATABASE IF EXISTS `"+c.DatabaseName()+"`")
	})
}

// Collect reads all topics and gives each case the records of its own: those
// of topics with its ID in their name.
func (l *Lab) Collect(ctx context.Context, cases []*Case) (map[*Case][]Record, error) {
	byID := map[string]*Case{}
	for _, c := range cases {
		byID[c.ID()] = c
	}
	records, err := readTopics(ctx, l.Kafka.Addr(), func(topic string) bool { return owner(byID, topic) != nil })
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(time.Minute).UnixMilli()
	from := l.Began.Add(-time.Minute).UnixMilli()
	out := map[*Case][]Record{}
	for _, r := range records {
		c := owner(byID, r.Topic)
		rec := Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}
		for _, h := range r.Headers {
			rec.Headers = append(rec.Headers, Header{h.Key, h.Value})
		}
		if rec.Time >= from && rec.Time <= until {
			rec.Time = 0
		}
		rec.normal(c.ID())
		out[c] = append(out[c], rec)
	}
	return out, nil
}

// idLength is that of Case.ID.
const idLength = 9

func owner(byID map[string]*Case, topic string) *Case {
	if strings.HasPrefix(topic, "__debezium-heartbeat.") {
		return nil
	}
	for i := 0; i+idLength <= len(topic); i++ {
		if c := byID[topic[i:i+idLength]]; c != nil {
			if strings.HasSuffix(topic, ".position") || topic == c.ID() {
				return nil // our position, Debezium's schema changes
			}
			return c
		}
	}
	return nil
}

// readTopics returns all committed records of the topics that want is true for, in
// the order of topic, partition and offset.
func readTopics(ctx context.Context, broker string, want func(string) bool) ([]*kgo.Record, error) {
	reader := kafkatest.Reader{Brokers: []string{broker}}
	ends, err := reader.Ends(ctx, want)
	if err != nil {
		return nil, err
	}
	for i := range ends {
		ends[i].Stable = ends[i].High // a commit is answered before its markers are written
	}
	var out []*kgo.Record
	err = reader.Each(ctx, ends, func(r *kgo.Record) error {
		if !r.Attrs.IsControl() {
			out = append(out, r)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return out, err
}

// workerFile writes the properties of a worker, with brokers and the address of its
// interface, and returns the path.
func (l *Lab) workerFile(name, listen string) (string, error) {
	lines, ok := Workers()[name]
	if !ok {
		return "", fmt.Errorf("there is no worker %q", name)
	}
	lines = slices.Concat([]string{
		"bootstrap.servers=" + l.Kafka.Addr(), "offset.storage.file.filename=" + filepath.Join(l.Dir, "offsets"),
		"listeners=http://" + listen,
	}, lines)
	path := filepath.Join(l.Dir, "worker-"+name+".properties")
	return path, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// poll calls f until it is done or ctx ends.
func poll(ctx context.Context, every time.Duration, f func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := f(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), errors.New("while waiting"))
		case <-ticker.C:
		}
	}
}
