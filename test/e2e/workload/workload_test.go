package workload

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// TestJournalIsWhatTheServerKept writes all kinds of transactions, with writers
// killed on the way, and holds journal and ledger against the outbox itself.
func TestJournalIsWhatTheServerKept(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context, servers.Options) (*servers.MySQL, error){
		"MySQL": servers.StartMySQL, "MariaDB": servers.StartMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			server, err := start(ctx, servers.Options{Log: t.Output()})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			shop, err := Create(ctx, server, Options{Database: "workload", Aggregate: "order", Partitions: 4, Keys: 50, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			load := Load{Transactions: 1500, Writers: 3, Batch: 5, MaxRows: 5, Size: 60, RolledBack: 5, Savepoint: 10,
				Foreign: 20}
			if name == "MySQL" {
				load.Compressed = 10
			}
			killed := make(chan error, 1)
			go func() {
				var errs []error
				for range 10 {
					time.Sleep(20 * time.Millisecond)
					errs = append(errs, shop.KillWriter(ctx))
				}
				killed <- errors.Join(errs...)
			}()
			if err := errors.Join(shop.Write(ctx, load), <-killed); err != nil {
				t.Fatal(err)
			}
			if err := shop.Write(ctx, Load{Transactions: 500, Writers: 3, Batch: 10, Quick: true, Size: 60}); err != nil {
				t.Fatal(err)
			}
			if err := shop.WriteOne(ctx, 1000, 20_000, 7); err != nil {
				t.Fatal(err)
			}
			ledger, err := shop.Settle(ctx)
			if err != nil {
				t.Fatal(err)
			}
			h, err := history.New(4, shop.Journal(), ledger, nil)
			if err != nil {
				t.Fatal(err)
			}
			counts := h.Counts()
			t.Log(counts)
			kept, err := server.Value(ctx, "SELECT COUNT(*) FROM workload.outbox")
			if err != nil {
				t.Fatal(err)
			}
			if want := strconv.Itoa(counts.Rows); kept != want {
				t.Errorf("the outbox has %s rows, journal and ledger say %s", kept, want)
			}
			if counts.RolledBack == 0 || counts.Transactions < 1500 {
				t.Errorf("the load is not what was asked for: %v", counts)
			}
		})
	}
}
