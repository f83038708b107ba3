package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{
		`{"n": 17, "note": "x"}`: 17, `{"n":1,"note":"x"}`: 1, `{"n":0}`: 0,
		`{"n":}`: -1, `{"m":1}`: -1, ``: -1, `{"n":`: -1, `{"n":x}`: -1,
	} {
		n, ok := number([]byte(text))
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("number(%q) = %d, want %d", text, n, want)
		}
	}
}

// A run counts only when every row came once.
func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		values []string
		fault  string
	}{
		"all":       {[]string{`{"n":1}`, `{"n": 0}`, `{"n":3}`, `{"n":2}`}, ""},
		"lost":      {[]string{`{"n":1}`, `{"n":3}`}, "of 3 rows 1 are missing, 0 came twice"},
		"repeated":  {[]string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":2}`}, "0 are missing, 1 came twice"},
		"no number": {[]string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `hello`}, "1 records are no rows"},
		"too large": {[]string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}, "1 records are no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			broker := fakeKafka(t, c.values)
			reader, err := consume(t.Context(), broker, "rows", 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			distinct := 3
			if name == "lost" {
				distinct = 2
			}
			if err := reader.wait(ctx, distinct); err != nil {
				t.Fatal(err)
			}
			err = reader.check(ctx)
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("check says %v, want %q", err, c.fault)
			}
		})
	}
}

func fakeKafka(t *testing.T, values []string) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "rows"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "rows", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return cluster.ListenAddrs()[0]
}

func TestWaitEndsWithItsContext(t *testing.T) {
	reader, err := consume(t.Context(), fakeKafka(t, nil), "rows", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.stop()
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if err := reader.wait(ctx, 1); !errors.Is(err, enough) {
		t.Errorf("wait says %v, want %v", err, enough)
	}
}

func TestTableComparesWithTheFirst(t *testing.T) {
	l := &lab{results: results{
		{"s", "a", "rate"}: {100, 300, 200}, {"s", "b", "rate"}: {100}, {"s", "a", "cpu"}: {2}, {"s", "b", "cpu"}: {10},
	}}
	got := l.table("s", []string{"a", "b", "absent"}, []metric{{"rate", "rows/s", 0, 1}, {"cpu", "s", 1, -1}})
	want := "| | rows/s | s |\n|---|---|---|\n| a | 200 (100–300) | 2.0 |\n| b | 100 [2×] | 10.0 [5×] |\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestFigure(t *testing.T) {
	for want, got := range map[string]string{"1,234,567": figure(1234567, 0), "999": figure(999, 0),
		"1,000.5": figure(1000.5, 1), "0.25": figure(0.25, 2)} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Targets say of which side of the wanted figure the measured one is.
func TestTargets(t *testing.T) {
	l := &lab{results: results{
		{catchUp, oursExactly, "all"}: {90}, {catchUp, debDefault, "all"}: {10}, {catchUp, oursExactly, "peak"}: {65},
	}}
	text := l.targets()
	for _, line := range []string{"defaults | ≥ 8.0 × | 9.0 × | met |",
		"resident in catch-up | ≤ 64 MiB | 65 MiB | **missed** |"} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if strings.Contains(text, "idle") {
		t.Error("a figure that was not measured is told")
	}
}

func TestScenarioNames(t *testing.T) {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	if !slices.Equal(names, scenarioNames()) {
		t.Errorf("scenarios %v are called %v", names, scenarioNames())
	}
	if _, err := parse([]string{"-only", "nonsense"}); err == nil {
		t.Error("a scenario that is not there is taken")
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.rss <= 0 || u.peak < u.rss {
		t.Errorf("%+v", u)
	}
	until := u.cpu + 30*time.Millisecond
	for deadline := time.Now().Add(20 * time.Second); u.cpu < until; {
		if time.Now().After(deadline) {
			t.Fatalf("no CPU time is seen to be spent: %+v", u)
		}
		if u, err = usageOf(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
}
