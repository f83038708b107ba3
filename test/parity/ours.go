package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
)

// Ours runs cases through the program of this project.
type Ours struct {
	Lab *Lab
	// Binary is the program.
	Binary string
	// Environ are more variables of its environment, as those that turn quirks on.
	Environ []string
	// AtOnce is how many connectors a process has.
	AtOnce int
	// Log is told of progress; nil for nobody.
	Log io.Writer

	next int
}

// Outcome is what became of a case in our program.
type Outcome struct {
	// Refused says why the configuration is not taken.
	Refused string
	// Code and Message are the last error of a connector that does not stream.
	Code, Message string
	Records       []Record
}

// Stopped says that the connector does not stream.
func (o *Outcome) Stopped() bool { return o.Refused != "" || o.Code != "" }

// Run runs the cases; expect tells what will come of each, so that it is known when it
// is done.
func (o *Ours) Run(ctx context.Context, cases []*Case, expect func(*Case) *Result) (map[*Case]*Outcome, error) {
	out := map[*Case]*Outcome{}
	for _, c := range cases {
		out[c] = &Outcome{}
	}
	for _, name := range WorkerNames() {
		var mine []*Case
		for _, c := range cases {
			if c.Worker == name {
				mine = append(mine, c)
			}
		}
		for group := range slices.Chunk(mine, o.AtOnce) {
			began := time.Now()
			if err := o.group(ctx, name, group, out, expect); err != nil {
				return nil, fmt.Errorf("worker %q: %w", name, err)
			}
			if o.Log != nil {
				fmt.Fprintf(o.Log, "worker %q: %d cases in %s\n", name, len(group), time.Since(began).Round(100*time.Millisecond))
			}
		}
	}
	records, err := o.Lab.Collect(ctx, cases)
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		out[c].Records = records[c]
	}
	return out, nil
}

func (o *Ours) group(ctx context.Context, worker string, cases []*Case, out map[*Case]*Outcome,
	expect func(*Case) *Result) error {
	if err := o.Lab.Prepare(ctx, cases); err != nil {
		return err
	}
	properties, err := o.Lab.workerFile(worker, "127.0.0.1:0")
	if err != nil {
		return err
	}
	files := map[string]*Case{}
	var order []string
	for _, c := range cases {
		o.next++
		path := filepath.Join(o.Lab.Dir, c.ID()+".json")
		if err := os.WriteFile(path, c.File(o.Lab.Server(), o.next, o.Lab.Dir), 0o600); err != nil {
			return err
		}
		files[path] = c
		order = append(order, path)
	}
	if order, err = o.valid(ctx, properties, order, files, out); err != nil {
		return err
	}
	var running []*Case
	for _, f := range order {
		running = append(running, files[f])
	}
	if len(running) > 0 {
		if err := o.run(ctx, properties, order, running, out, expect); err != nil {
			return err
		}
	}
	return o.Lab.Drop(ctx, cases)
}

func (o *Ours) command(ctx context.Context, verb, properties string, more ...string) *exec.Cmd {
	args := append([]string{verb, "--worker", properties, "--data-dir", filepath.Join(o.Lab.Dir, "data")}, more...)
	cmd := exec.CommandContext(ctx, o.Binary, args...)
	cmd.Env = slices.Concat(os.Environ(), o.Environ)
	return cmd
}

var connectorIndex = regexp.MustCompile(`^connectors\[(\d+)\]`)

// valid returns the files that the program takes; the others are noted as refused.
func (o *Ours) valid(ctx context.Context, properties string, order []string, files map[string]*Case,
	out map[*Case]*Outcome) ([]string, error) {
	for len(order) > 0 {
		cmd := o.command(ctx, "validate", properties, append([]string{"-o", "json"}, order...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		text, err := cmd.Output()
		if err == nil {
			return order, nil
		}
		var answer struct {
			Errors []struct{ File, Key, Path, Message string }
		}
		if json.Unmarshal(text, &answer) != nil || len(answer.Errors) == 0 {
			return nil, fmt.Errorf("validating: %w: %s%s", err, text, stderr.Bytes())
		}
		bad := map[string]bool{}
		for _, e := range answer.Errors {
			file := e.File
			if m := connectorIndex.FindStringSubmatch(e.Path); files[file] == nil && m != nil {
				i, _ := strconv.Atoi(m[1])
				file = order[min(i, len(order)-1)]
			}
			c := files[file]
			if c == nil {
				return nil, fmt.Errorf("validating: %s: %s: %s: %s", e.File, e.Key, e.Path, e.Message)
			}
			bad[file] = true
			out[c].Refused += strings.TrimSpace(e.Key+" "+e.Path+": "+e.Message) + "\n"
		}
		order = slices.DeleteFunc(order, func(f string) bool { return bad[f] })
	}
	return nil, nil
}

const (
	oursPatience = 2 * time.Minute
	failPatience = 25 * time.Second
)

func (o *Ours) run(ctx context.Context, properties string, order []string, cases []*Case, out map[*Case]*Outcome,
	expect func(*Case) *Result) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, oursPatience, fmt.Errorf("not done after %s", oursPatience))
	defer cancel()
	data := filepath.Join(o.Lab.Dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	log := filepath.Join(o.Lab.Dir, "program.log")
	cmd := o.command(ctx, "run", properties, order...)
	proc, err := harness.StartCommand(cmd, log)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			text, _ := proc.Log()
			err = fmt.Errorf("%w\n%s", err, lastBytes(text, 4000))
			_ = proc.Kill()
		}
	}()
	address, err := proc.Admin(ctx)
	if err != nil {
		return err
	}
	var status map[string]admin.Connector
	look := func(settled func(*Case, admin.Connector) bool) func() (bool, error) {
		return func() (bool, error) {
			var err error
			if status, err = ask(ctx, address); err != nil {
				return false, nil // it is busy
			}
			for _, c := range cases {
				if !settled(c, status[c.ID()]) {
					return false, nil
				}
			}
			return true, nil
		}
	}
	waiting := func(c *Case, s admin.Connector, what string) error {
		return fmt.Errorf("case %q %s: state %s, phase %s, %+v", c.Name, what, s.State, s.Phase, s.LastError)
	}
	err = poll(ctx, 100*time.Millisecond, look(func(_ *Case, s admin.Connector) bool { return streams(s) || stopped(s) }))
	if err != nil {
		return errors.Join(err, stuck(cases, status, waiting, "does not start",
			func(_ *Case, s admin.Connector) bool { return streams(s) || stopped(s) }))
	}
	if err := o.Lab.Do(ctx, cases); err != nil {
		return err
	}
	file, pos, err := o.Lab.end(ctx)
	if err != nil {
		return err
	}
	late := false // those that should have failed by now
	done := func(c *Case, s admin.Connector) bool {
		if stopped(s) {
			return true
		}
		want := expect(c)
		return (late || !want.stopped() && s.Published >= uint64(len(want.Records))) && streams(s) &&
			(s.Source.BinlogFile > file || s.Source.BinlogFile == file && s.Source.BinlogPosition >= pos)
	}
	patient, cancelPatient := context.WithTimeout(ctx, failPatience)
	err = poll(patient, 100*time.Millisecond, look(done))
	cancelPatient()
	if late = err != nil; late {
		err = poll(ctx, 100*time.Millisecond, look(done))
	}
	if err != nil && status == nil {
		return err
	}
	for _, c := range cases {
		s := status[c.ID()]
		if stopped(s) {
			out[c].Code, out[c].Message = s.LastError.Code, s.LastError.Message
		}
	}
	if err != nil && o.Log != nil {
		fmt.Fprintln(o.Log, stuck(cases, status, waiting, "does not end", done))
	}
	return proc.Terminate(context.WithoutCancel(ctx))
}

func stuck(cases []*Case, status map[string]admin.Connector, say func(*Case, admin.Connector, string) error,
	what string, ok func(*Case, admin.Connector) bool) error {
	var errs []error
	for _, c := range cases {
		if s := status[c.ID()]; !ok(c, s) {
			errs = append(errs, say(c, s, what))
		}
	}
	return errors.Join(errs...)
}

func streams(s admin.Connector) bool { return s.Phase == "streaming" && s.Source != nil }

// stopped says that a connector has failed, or that it waits for its table to get the
// columns that the configuration names.
func stopped(s admin.Connector) bool {
	return s.State == "failed" || s.LastError != nil && (s.LastError.Code == "missing_column" ||
		s.LastError.Code == "missing_table")
}

func ask(ctx context.Context, address string) (map[string]admin.Connector, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/status", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var s admin.Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil, err
	}
	out := map[string]admin.Connector{}
	for _, c := range s.Connectors {
		out[c.Name] = c
	}
	return out, nil
}

// end is the end of the binlog.
func (l *Lab) end(ctx context.Context) (file string, pos uint64, err error) {
	r, err := l.MySQL.Query(ctx, "SHOW BINARY LOG STATUS")
	if err != nil {
		return "", 0, err
	}
	if file, err = r.GetString(0, 0); err != nil {
		return "", 0, err
	}
	pos, err = r.GetUint(0, 1)
	return file, pos, err
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }
