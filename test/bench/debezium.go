package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// connectJVM are the arguments of Connect's own start script.
var connectJVM = []string{
	"-server", "-Xms256M", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
	"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
}

const (
	connectHeap = "2g" // of Connect's own start script
	server      = "bench"
)

// tuned is what is usually done for speed.
func tuned() map[string]string {
	return map[string]string{
		"poll.interval.ms": "5", "max.batch.size": "16384", "max.queue.size": "65536",
		"producer.override.batch.size": "262144", "producer.override.linger.ms": "0",
	}
}

func connectorName(s *span) string { return server + "-" + s.name }

func (l *lab) debeziumConfig(s *span, topic string, replay bool, more map[string]string) map[string]string {
	mode := "no_data"
	if replay {
		mode = "recovery" // makes the schema history from the tables as they are
	}
	config := map[string]string{
		"connector.class":                           "io.debezium.connector.mysql.MySqlConnector",
		"tasks.max":                                 "1",
		"database.hostname":                         s.server.Host(),
		"database.port":                             fmt.Sprint(s.server.Port()),
		"database.user":                             servers.CDCUser,
		"database.password":                         servers.CDCPassword,
		"database.server.id":                        "7001",
		"topic.prefix":                              server,
		"database.include.list":                     s.database(),
		"table.include.list":                        s.pattern(),
		"snapshot.mode":                             mode,
		"schema.history.internal":                   "io.debezium.relational.history.MemorySchemaHistory",
		"include.schema.changes":                    "false",
		"transforms":                                "outbox",
		"transforms.outbox.type":                    "io.debezium.transforms.outbox.EventRouter",
		"transforms.outbox.route.topic.replacement": topic,
	}
	maps.Copy(config, more)
	return config
}

func converters() []string {
	const text = "org.apache.kafka.connect.storage.StringConverter"
	return []string{"key.converter=" + text, "value.converter=" + text}
}

// startDebezium starts a standalone worker that has its connector from the start, as
// connect-standalone does.
func (l *lab) startDebezium(ctx context.Context, j job, more map[string]string) (*running, error) {
	offsets := filepath.Join(j.dir, "offsets")
	if j.replay {
		saved, err := os.ReadFile(l.offsets)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(offsets, saved, 0o644); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(j.dir, "connector.json")
	text, err := json.Marshal(map[string]any{"name": connectorName(j.span),
		"config": l.debeziumConfig(j.span, j.topic, j.replay, more)})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	began := time.Now()
	worker, err := servers.StartConnect(ctx, servers.ConnectOptions{
		Dir: j.dir, Kafka: l.kafka.Addr(), Heap: connectHeap, JVMArgs: connectJVM, Properties: converters(),
		Connectors: []string{file}, Offsets: offsets, Log: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	return &running{pid: worker.PID(), began: began, log: worker.LogPath(),
		stop: func() error { return endWorker(worker) }}, nil
}

// endWorker does not wait for an orderly end, which nobody needs any more.
func endWorker(worker *servers.Connect) error {
	if err := worker.Kill(); err != nil {
		return err
	}
	return worker.Close()
}

// startDistributed starts a worker of a cluster, the only kind that can deliver
// exactly once, and then the connector: the time until then does not count.
func (l *lab) startDistributed(ctx context.Context, j job) (*running, error) {
	worker, err := servers.StartConnect(ctx, servers.ConnectOptions{
		Name: "connect-" + j.topic, Dir: j.dir, Kafka: l.kafka.Addr(), Heap: connectHeap, JVMArgs: connectJVM,
		Distributed: true,
		Properties:  append(converters(), "exactly.once.source.support=enabled"), Log: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	r := &running{pid: worker.PID(), log: worker.LogPath(), stop: func() error { return endWorker(worker) }}
	config := tuned()
	config["exactly.once.support"] = "required"
	config = l.debeziumConfig(j.span, j.topic, j.replay, config)
	if err := createStopped(ctx, worker.URL(), j.span, config, j.replay); err != nil {
		return nil, fmt.Errorf("%w (and its end: %w)", err, r.stop())
	}
	r.began = time.Now()
	if err := call(ctx, http.MethodPut, worker.URL()+"/connectors/"+connectorName(j.span)+"/resume", nil); err != nil {
		return nil, fmt.Errorf("%w (and its end: %w)", err, r.stop())
	}
	return r, nil
}

// createStopped makes a connector that does not run yet, with the beginning of its
// span as its offset if it is to replay that.
func createStopped(ctx context.Context, url string, s *span, config map[string]string, replay bool) error {
	name := connectorName(s)
	if err := call(ctx, http.MethodPost, url+"/connectors", map[string]any{"name": name, "initial_state": "STOPPED",
		"config": config}); err != nil {
		return err
	}
	if !replay {
		return nil
	}
	offset := map[string]any{"file": s.file, "pos": s.pos}
	if s.gtids != "" {
		offset["gtids"] = s.gtids
	}
	return call(ctx, http.MethodPatch, url+"/connectors/"+name+"/offsets", map[string]any{
		"offsets": []any{map[string]any{"partition": map[string]string{"server": server}, "offset": offset}},
	})
}

// saveOffsets has a worker write the file of offsets with the beginnings of all spans
// of the main server.
func (l *lab) saveOffsets(ctx context.Context) error {
	if l.against != "debezium" || len(l.spans) == 0 {
		return nil
	}
	l.say("preparing Debezium's offsets")
	dir := filepath.Join(l.dir, "offsets")
	l.offsets = filepath.Join(dir, "offsets")
	worker, err := servers.StartConnect(ctx, servers.ConnectOptions{Dir: dir, Kafka: l.kafka.Addr(),
		Properties: converters(), Log: os.Stderr})
	if err != nil {
		return err
	}
	for _, s := range l.spans {
		if s.server == l.mysql {
			if err := createStopped(ctx, worker.URL(), s, l.debeziumConfig(s, "none", true, nil), true); err != nil {
				return fmt.Errorf("%w (and its end: %w)", err, worker.Close())
			}
		}
	}
	return worker.Close()
}

// restPatience is how long a worker may say that it is still busy with the last change.
const restPatience = 30 * time.Second

// call asks a worker's REST interface, again while it says that it is not ready.
func call(ctx context.Context, method, url string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	until := time.Now().Add(restPatience)
	for {
		code, answer, err := callOnce(ctx, method, url, text)
		switch {
		case err != nil:
			return err
		case code < 300:
			return nil
		case code != http.StatusConflict && code != http.StatusBadRequest && code != http.StatusNotFound && code < 500 ||
			time.Now().After(until):
			return fmt.Errorf("%s %s: HTTP %d: %s", method, url, code, answer)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func callOnce(ctx context.Context, method, url string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return resp.StatusCode, answer, err
}
