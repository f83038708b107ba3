package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/debezium/offset"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// What a worker answers is bounded: some hundred bytes for each connector, from a program
// that may first have to find its leader.
const (
	maxStored     = 64 << 20
	workerTimeout = 90 * time.Second
)

func (r *remote) offsetImport() *cobra.Command {
	var from debeziumStore
	dry := false
	c := r.writes(&cobra.Command{
		Use: "import NAME", Short: "Have a stopped connector go on where one of Debezium's has stopped",
		Args: cobra.ExactArgs(1),
		Long: "Have a stopped connector go on where one of Debezium's has stopped: what Debezium has published\n" +
			"does not come again, to the row, and nothing is passed over. Stop Debezium's connector first\n" +
			"(PUT /connectors/NAME/stop); of a worker that is asked, one that is not STOPPED is refused. An\n" +
			"offset that is not of this source, or of which the source has purged what follows, changes nothing.",
	})
	f := c.Flags()
	f.StringVar(&from.connect, "from-connect", "", "`URL` of a running Connect worker (3.5 or newer)")
	f.StringVar(&from.topic, "from-topic", "", "`topic` in which Connect keeps offsets (offset.storage.topic), at "+
		"the brokers of the connector here")
	f.StringSliceVar(&from.brokers, "brokers", nil, "`addresses` of other brokers, which ask for no credentials, "+
		"that have --from-topic")
	f.StringVar(&from.file, "from-file", "", "`file` in which a standalone worker or Debezium Server keeps offsets "+
		"(offset.storage.file.filename)")
	f.StringVar(&from.name, "debezium-name", "", "`name` of Debezium's connector, if it is another one; Debezium "+
		"Server's is its sink's type, as kafka")
	f.BoolVar(&dry, "dry-run", false, "only tell what would be done")
	c.RunE = func(c *cobra.Command, args []string) error {
		if from.name == "" {
			from.name = args[0]
		}
		stored, err := from.read(c.Context())
		if err != nil {
			return err
		}
		return r.changeOffset(c, http.MethodPost, args[0], map[string]any{"debezium": stored, "dry_run": dry})
	}
	return c
}

// debeziumStore is where Debezium has an offset.
type debeziumStore struct {
	connect, topic, file string
	brokers              []string
	name                 string
}

// read returns what a node wants to know of the offset.
func (s *debeziumStore) read(ctx context.Context) (map[string]any, error) {
	ways := 0
	for _, given := range []string{s.connect, s.topic, s.file} {
		if given != "" {
			ways++
		}
	}
	switch {
	case ways != 1 || len(s.brokers) > 0 && s.topic == "":
		return nil, &usageError{err: errors.New("import wants one of --from-connect, --from-topic (with --brokers or " +
			"without) and --from-file")}
	case s.connect != "":
		return s.fromConnect(ctx)
	case len(s.brokers) > 0:
		stored, err := node.OffsetInTopic(ctx, s.brokers, s.topic, s.name)
		return map[string]any{"offset": stored}, err
	case s.topic != "":
		return map[string]any{"topic": s.topic, "name": s.name}, nil
	default:
		stored, err := node.OffsetInFile(s.file, s.name)
		return map[string]any{"offset": stored}, err
	}
}

// fromConnect asks a worker, whose connector must be stopped: one that is paused has not
// noted all that it has published.
func (s *debeziumStore) fromConnect(ctx context.Context) (map[string]any, error) {
	var status struct {
		Connector struct {
			State string `json:"state"`
		} `json:"connector"`
		Tasks []struct {
			State string `json:"state"`
		} `json:"tasks"`
	}
	if err := s.ask(ctx, "/status", &status); err != nil {
		return nil, err
	}
	if state := status.Connector.State; state != "STOPPED" || len(status.Tasks) > 0 {
		return nil, fmt.Errorf("connector %s is %s with %d tasks at Connect, and must be STOPPED without any: it may "+
			"publish more, or have published what its offset does not say. PUT %s/connectors/%s/stop, and wait until its "+
			"status says so",
			s.name, state, len(status.Tasks), s.shown(), url.PathEscape(s.name))
	}
	var stored json.RawMessage
	if err := s.ask(ctx, "/offsets", &stored); err != nil {
		return nil, err
	}
	one, err := offset.ParseREST(stored, "")
	switch {
	case err != nil:
		return nil, fmt.Errorf("connector %s at Connect: %w", s.name, err)
	case one == nil:
		return nil, fmt.Errorf("connector %s has no offset at Connect: it has published nothing", s.name)
	}
	var all map[string]string
	if err := s.ask(ctx, "/config", &all); err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for key, value := range all {
		if slices.Contains(offset.ConfigKeys, key) {
			keys[key] = value
		}
	}
	return map[string]any{"offset": one, "config": keys}, nil
}

func (s *debeziumStore) shown() string {
	u, err := url.Parse(s.connect)
	if err != nil {
		return "the worker"
	}
	return strings.TrimSuffix(u.Redacted(), "/")
}

func (s *debeziumStore) ask(ctx context.Context, what string, answer any) error {
	path := "/connectors/" + url.PathEscape(s.name) + what
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.connect, "/")+path, nil)
	if err != nil {
		return &usageError{err: fmt.Errorf("--from-connect is not a URL")}
	}
	resp, err := (&http.Client{Timeout: workerTimeout}).Do(req)
	if err != nil {
		return fmt.Errorf("asking Connect: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStored))
	switch {
	case err != nil:
		return fmt.Errorf("asking Connect: %w", err)
	case resp.StatusCode == http.StatusOK && json.Unmarshal(body, answer) == nil:
		return nil
	case what == "/offsets" && resp.StatusCode != http.StatusConflict:
		return fmt.Errorf("%s%s answers %s: Connect tells offsets since 3.5; before that, take them from the worker's "+
			"topic or file", s.shown(), path, resp.Status)
	}
	var told struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &told) // some failures answer with HTML
	return fmt.Errorf("%s%s answers %s: %s", s.shown(), path, resp.Status, told.Message)
}
