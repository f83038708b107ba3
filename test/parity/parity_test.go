package parity

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

var (
	only  = flag.String("cases", "", "only the cases whose group and name, as group/name, match this regular expression")
	write = flag.Bool("write", false, "store what comes out without quirks where that differs from Debezium's")
)

// plainDir holds the records of cases that differ without quirks.
const plainDir = "testdata/plain"

// TestQuirks: with quirks on, every record and every failure is Debezium's, but for
// the few differences that stay.
func TestQuirks(t *testing.T) {
	// The other test delivers exactly once.
	run(t, "FULL", "BINLOG_OUTBOX_DEBEZIUM_QUIRKS=true", "BINLOG_OUTBOX_DELIVERY=at_least_once")
}

// TestWithoutQuirks: by default the same holds but for the differences that
// docs/eventrouter.md lists. It runs those, and some groups to show that the server's
// default metadata is enough where no table changes.
func TestWithoutQuirks(t *testing.T) {
	run(t, "MINIMAL")
}

func run(t *testing.T, metadata string, environ ...string) {
	quirks := len(environ) > 0
	// The groups that run without quirks beside the differences.
	groups := []string{"router", "shapes", "names"}
	chosen := func(c *Case) bool {
		return quirks || !c.FullMetadata && (c.Differs != "" || slices.Contains(groups, c.Group))
	}
	debezium, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Load(plainDir)
	if err != nil {
		t.Fatal(err)
	}
	all := Cases()
	var cases []*Case
	for i := range all {
		if c := &all[i]; chosen(c) && regexp.MustCompile(*only).MatchString(c.Group+"/"+c.Name) {
			cases = append(cases, c)
		}
	}
	got := ours(t, cases, metadata, environ, func(c *Case) *Result {
		if c.Taken != "" {
			return &Result{}
		}
		r, _ := debezium.Get(c)
		if differs(c, quirks) {
			if p, ok := plain.Get(c); ok {
				r = p
			}
		}
		return &r
	})
	records := 0
	for _, c := range cases {
		records += len(got[c].Records)
		t.Run(c.Group+"/"+c.Name, func(t *testing.T) {
			want, ok := debezium.Get(c)
			if !ok {
				t.Fatal("is not recorded; record it: go run ./test/parity/record -write")
			}
			judge(t, c, want, plain, got[c], quirks)
		})
	}
	t.Logf("%d cases, %d records", len(cases), records)
	if *write && !t.Failed() {
		plain.Keep(all)
		if err := plain.Save(plainDir); err != nil {
			t.Fatal(err)
		}
	}
}

func differs(c *Case, quirks bool) bool { return c.Differs != "" && (c.Always || !quirks) }

func judge(t *testing.T, c *Case, want Result, plain Store, got *Outcome, quirks bool) {
	switch {
	case c.Refused != "":
		if got.Refused == "" {
			t.Fatalf("is not refused, though %s should be", c.Refused)
		}
		if !regexp.MustCompile(regexp.QuoteMeta(c.Refused)).MatchString(got.Refused) {
			t.Errorf("refused for another reason than %s: %s", c.Refused, got.Refused)
		}
	case c.Taken != "":
		if got.Stopped() || want.Failed+want.Refused == "" || len(got.Records) == 0 {
			t.Errorf("is not taken (%s%s), or Debezium takes it too", got.Refused, got.Message)
		}
	case differs(c, quirks):
		if Compare(want, got) == "" {
			t.Errorf("does not differ from Debezium, though %s says so", c.Differs)
		}
		if *write {
			plain.Put(c, Result{Refused: got.Refused, Failed: got.Code, Records: got.Records})
			return
		}
		expected, ok := plain.Get(c)
		if !ok {
			t.Fatal("is not stored; run: go test ./test/parity -write")
		}
		if diff := DiffRecords(expected.Records, got.Records); diff != "" || expected.Failed != got.Code ||
			(expected.Refused == "") != (got.Refused == "") {
			t.Errorf("stopped with %q (%s), want %q\n%s", got.Code, got.Message+got.Refused, expected.Failed, diff)
		}
	default:
		if diff := Compare(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// ours runs the cases through the program on servers of their own.
func ours(t *testing.T, cases []*Case, metadata string, environ []string,
	expect func(*Case) *Result) map[*Case]*Outcome {
	t.Helper()
	began := time.Now()
	binary, err := harness.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lab := &Lab{
		MySQL: servers.MySQLForTest(t, MySQLOptions()), Kafka: servers.KafkaForTest(t, KafkaOptions()),
		Dir: t.TempDir(), Began: time.Now(),
	}
	if err := lab.MySQL.Exec(t.Context(), "SET GLOBAL binlog_row_metadata = "+metadata); err != nil {
		t.Fatal(err)
	}
	o := Ours{Lab: lab, Binary: binary, Environ: environ, AtOnce: 50, Log: t.Output()}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	got, err := o.Run(ctx, cases, expect)
	if err != nil {
		if text, e := os.ReadFile(filepath.Join(lab.Dir, "program.log")); e == nil {
			_ = os.WriteFile(filepath.Join(os.TempDir(), "parity-program.log"), text, 0o600)
		}
		t.Fatal(err)
	}
	fmt.Fprintf(t.Output(), "%d cases in %s\n", len(cases), time.Since(began).Round(time.Second))
	return got
}
