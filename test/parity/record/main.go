// Command record runs the corpus through the real Debezium and compares what comes
// out with what is stored, or stores it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/parity"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

func main() {
	write := flag.Bool("write", false, "store what comes out instead of comparing it")
	run := flag.String("run", "", "only the cases whose group and name, as group/name, match this regular expression")
	atOnce := flag.Int("at-once", 40, "connectors that run at a time")
	dir := flag.String("dir", filepath.Join("test", "parity", "testdata"), "where the records are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx, *run, *dir, *write, *atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		stop()
		os.Exit(1)
	}
}

func record(ctx context.Context, run, dir string, write bool, atOnce int) error {
	only, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	all := parity.Cases()
	var cases []*parity.Case
	for i := range all {
		if only.MatchString(all[i].Group + "/" + all[i].Name) {
			cases = append(cases, &all[i])
		}
	}
	store, err := parity.Load(dir)
	if err != nil {
		return err
	}
	lab, closeLab, err := startLab(ctx)
	if err != nil {
		return err
	}
	defer closeLab()
	debezium := parity.Debezium{Lab: lab, AtOnce: atOnce, Log: os.Stderr}
	results, err := debezium.Run(ctx, cases)
	if err != nil {
		return err
	}
	records, different := 0, 0
	for _, c := range cases {
		records += len(results[c].Records)
		if write {
			store.Put(c, results[c])
			continue
		}
		stored, ok := store.Get(c)
		if !ok {
			fmt.Printf("%s/%s: is not stored\n", c.Group, c.Name)
			different++
			continue
		}
		if diff := parity.Diff(stored, results[c]); diff != "" {
			fmt.Printf("%s/%s: %s\n", c.Group, c.Name, diff)
			different++
		}
	}
	fmt.Printf("%d cases, %d records, %d differ\n", len(cases), records, different)
	if write {
		store.Keep(all)
		return store.Save(dir)
	}
	if different > 0 {
		return fmt.Errorf("%d cases differ from what is stored", different)
	}
	return nil
}

// startLab starts the servers of a run.
func startLab(ctx context.Context) (*parity.Lab, func(), error) {
	dir, err := os.MkdirTemp("", "binlog-outbox-parity-")
	if err != nil {
		return nil, nil, err
	}
	lab := &parity.Lab{Dir: dir, Began: time.Now()}
	closeAll := func() {
		// Their data goes with them.
		if lab.MySQL != nil {
			_ = lab.MySQL.Close()
		}
		if lab.Kafka != nil {
			_ = lab.Kafka.Close()
		}
		_ = os.RemoveAll(dir)
	}
	if lab.MySQL, err = servers.StartMySQL(ctx, parity.MySQLOptions()); err == nil {
		lab.Kafka, err = servers.StartKafka(ctx, parity.KafkaOptions())
	}
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	return lab, closeAll, nil
}
