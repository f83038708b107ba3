package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// Debezium runs cases through the real one.
type Debezium struct {
	Lab *Lab
	// AtOnce is how many connectors a worker has at a time.
	AtOnce int
	// Log is told of progress; nil for nobody.
	Log io.Writer

	url  string
	next int
}

const (
	// quiet is how long nothing may happen before a group of cases counts as done:
	// Debezium takes five seconds to fail after the producer did.
	quiet         = 9 * time.Second
	startPatience = 3 * time.Minute
	runPatience   = 10 * time.Minute
)

// Run runs the cases and returns what came out.
func (d *Debezium) Run(ctx context.Context, cases []*Case) (map[*Case]Result, error) {
	results := map[*Case]Result{}
	for _, name := range WorkerNames() {
		var mine []*Case
		for _, c := range cases {
			if c.Worker == name {
				mine = append(mine, c)
			}
		}
		if len(mine) > 0 {
			if err := d.worker(ctx, name, mine, results); err != nil {
				return nil, fmt.Errorf("worker %q: %w", name, err)
			}
		}
	}
	records, err := d.Lab.Collect(ctx, cases)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		r := results[c]
		r.Records = records[c]
		results[c] = r
	}
	return results, nil
}

func (d *Debezium) worker(ctx context.Context, name string, cases []*Case, results map[*Case]Result) (err error) {
	worker, err := servers.StartConnect(ctx, servers.ConnectOptions{Kafka: d.Lab.Kafka.Addr(), Properties: Workers()[name],
		Log: d.Log})
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = worker.Close()
			return
		}
		if text, e := os.ReadFile(worker.LogPath()); e == nil {
			_ = os.WriteFile(os.TempDir()+"/parity-connect.log", text, 0o644)
		}
		_ = worker.Close()
	}()
	d.url = worker.URL()
	for _, group := range groups(cases, d.AtOnce) {
		began := time.Now()
		if err := d.group(ctx, worker, group, results); err != nil {
			return err
		}
		if d.Log != nil {
			fmt.Fprintf(d.Log, "worker %q: %d cases in %s\n", name, len(group), time.Since(began).Round(time.Second))
		}
	}
	return nil
}

// groups parts the cases; those that others do not survive come last, one by one.
func groups(cases []*Case, atOnce int) [][]*Case {
	var together, alone []*Case
	for _, c := range cases {
		if c.Alone {
			alone = append(alone, c)
		} else {
			together = append(together, c)
		}
	}
	return slices.Concat(slices.Collect(slices.Chunk(together, atOnce)), slices.Collect(slices.Chunk(alone, 1)))
}

// group runs some cases at once: all their connectors, then all their statements.
func (d *Debezium) group(ctx context.Context, worker *servers.Connect, cases []*Case, results map[*Case]Result) error {
	if err := d.Lab.Prepare(ctx, cases); err != nil {
		return err
	}
	var running []*Case
	number := map[*Case]int{}
	for _, c := range cases {
		d.next++
		number[c] = d.next
		refused, err := d.create(ctx, c, d.next)
		if err != nil {
			return err
		}
		if refused != "" {
			results[c] = Result{Refused: refused}
			continue
		}
		running = append(running, c)
	}
	if err := d.streaming(ctx, worker, running, number); err != nil {
		return err
	}
	if err := d.Lab.Do(ctx, running); err != nil {
		return err
	}
	if err := d.settle(ctx, running); err != nil {
		return err
	}
	for _, c := range running {
		s, err := d.status(ctx, c)
		if err != nil {
			return err
		}
		results[c] = Result{Failed: c.exception(s.trace())}
		if _, err := d.call(ctx, http.MethodDelete, "/connectors/"+c.ID(), nil, nil); err != nil {
			return err
		}
	}
	return d.Lab.Drop(ctx, cases)
}

// create makes a connector; refused is why the worker does not take it.
func (d *Debezium) create(ctx context.Context, c *Case, number int) (refused string, err error) {
	var answer struct {
		Message string `json:"message"`
	}
	code, err := d.call(ctx, http.MethodPost, "/connectors", c.File(d.Lab.Server(), number, d.Lab.Dir), &answer)
	switch {
	case err != nil:
		return "", err
	case code == http.StatusCreated:
		return "", nil
	case answer.Message == "":
		return fmt.Sprintf("HTTP %d", code), nil
	default:
		return strings.TrimSpace(answer.Message), nil
	}
}

type connectorStatus struct {
	Connector struct{ State, Trace string }
	Tasks     []struct{ State, Trace string }
}

func (s *connectorStatus) failed() bool {
	return s.Connector.State == "FAILED" || len(s.Tasks) > 0 && s.Tasks[0].State == "FAILED"
}

func (s *connectorStatus) trace() string {
	if len(s.Tasks) > 0 && s.Tasks[0].State == "FAILED" {
		return s.Tasks[0].Trace
	}
	return s.Connector.Trace
}

func (d *Debezium) status(ctx context.Context, c *Case) (connectorStatus, error) {
	var s connectorStatus
	_, err := d.call(ctx, http.MethodGet, "/connectors/"+c.ID()+"/status", nil, &s)
	return s, err
}

// streaming waits until every connector reads the binlog, or has failed.
func (d *Debezium) streaming(ctx context.Context, worker *servers.Connect, cases []*Case, number map[*Case]int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("not every connector streams after %s",
		startPatience))
	defer cancel()
	return poll(ctx, 500*time.Millisecond, func() (bool, error) {
		log, err := os.ReadFile(worker.LogPath())
		if err != nil {
			return false, err
		}
		for _, c := range cases {
			// The binlog client names the connector by its server id.
			if bytes.Contains(log, fmt.Appendf(nil, "(sid:%d,", 7_000_000+number[c])) {
				continue
			}
			if s, err := d.status(ctx, c); err != nil || !s.failed() {
				return false, err
			}
		}
		return true, nil
	})
}

// settle waits until nothing has happened for a while.
func (d *Debezium) settle(ctx context.Context, cases []*Case) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runPatience, fmt.Errorf("records still come after %s", runPatience))
	defer cancel()
	reader := kafkatest.Reader{Brokers: []string{d.Lab.Kafka.Addr()}}
	byID := map[string]*Case{}
	for _, c := range cases {
		byID[c.ID()] = c
	}
	last, since := "", time.Now()
	return poll(ctx, time.Second, func() (bool, error) {
		ends, err := reader.Ends(ctx, func(topic string) bool { return owner(byID, topic) != nil })
		if err != nil {
			return false, nil // a topic that has just been made has no leader yet
		}
		var sum int64
		for _, end := range ends {
			sum += end.High
		}
		failed := 0
		for _, c := range cases {
			s, err := d.status(ctx, c)
			if err != nil {
				return false, err
			}
			if s.failed() {
				failed++
			}
		}
		if now := fmt.Sprint(sum, failed); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet, nil
	})
}

// call asks the worker's REST interface.
func (d *Debezium) call(ctx context.Context, method, path string, body []byte, answer any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("asking the worker: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("asking the worker: %w", err)
	}
	if answer != nil && len(text) > 0 {
		// Some failures answer with HTML.
		_ = json.Unmarshal(text, answer)
	}
	return resp.StatusCode, nil
}

var (
	javaIdentity = regexp.MustCompile(`@[0-9a-f]{5,8}\b`)
	binlogPlace  = regexp.MustCompile(`binlog\.\d+`)
	offsetPlace  = regexp.MustCompile(`at offset \{[^}]*\}`)
	timeBounds   = regexp.MustCompile(`within \[-?\d+, \d+\]`)
)

// exception keeps of a trace the exceptions and their causes, without frames and
// without what differs from run to run.
func (c *Case) exception(trace string) string {
	var out []string
	for line := range strings.Lines(trace) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "\tat ") || strings.HasPrefix(line, "\t... ") || strings.TrimSpace(line) == "" {
			continue
		}
		out = append(out, line)
	}
	text := strings.Join(out, "\n")
	text = javaIdentity.ReplaceAllString(text, "@<hash>")
	text = offsetPlace.ReplaceAllString(text, "at offset {<offset>}")
	text = timeBounds.ReplaceAllString(text, "within [<bounds>]")
	return binlogPlace.ReplaceAllString(text, "binlog.<n>")
}
