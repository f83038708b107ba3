package restapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Answer is what came to a Step.
type Answer struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Location    string `json:"location,omitempty"`
	// Body is the JSON of the answer, Text what is none.
	Body json.RawMessage `json:"body,omitempty"`
	Text string          `json:"text,omitempty"`
}

// Recording is the answers to the steps, by name, of one version.
type Recording struct {
	Connect  string            `json:"connect"`
	Debezium string            `json:"debezium"`
	Answers  map[string]Answer `json:"answers"`
}

// Load reads a recording.
func Load(path string) (*Recording, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Recording)
	return r, json.Unmarshal(b, r)
}

// Save writes a recording, in a form that shows its changes line by line.
func (r *Recording) Save(path string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// Runner makes the steps at one worker.
type Runner struct {
	// URL is the worker's, without a slash at its end.
	URL string
	// Fill has the values for what stands in braces.
	Fill *strings.Replacer
	// Publish has an outbox row published by the connector orders.
	Publish func(context.Context) error
	Client  *http.Client
	// Patience is how long a step is repeated.
	Patience time.Duration
}

// Do makes one step, again until its answer is as the step says.
func (r *Runner) Do(ctx context.Context, s *Step) (Answer, error) {
	var published time.Time
	for end := time.Now().Add(r.Patience); ; {
		// A task that says that it runs may not read yet, and not see the row.
		if s.Publish && time.Since(published) > 2*time.Second {
			if err := r.Publish(ctx); err != nil {
				return Answer{}, err
			}
			published = time.Now()
		}
		a, err := r.once(ctx, s)
		if err != nil {
			return a, fmt.Errorf("%s: %w", s.Name, err)
		}
		text := compact(a)
		if strings.Contains(text, s.Until) && (s.Not == "" || !strings.Contains(text, s.Not)) {
			return a, nil
		}
		if time.Now().After(end) {
			return a, fmt.Errorf("%s: no answer with %q and without %q within %s; the last is %d %s", s.Name, s.Until, s.Not,
				r.Patience, a.Status, text)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func compact(a Answer) string {
	var b bytes.Buffer
	if json.Compact(&b, a.Body) == nil {
		return b.String()
	}
	return a.Text
}

func (r *Runner) once(ctx context.Context, s *Step) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, s.Method, r.URL+s.Path, strings.NewReader(r.Fill.Replace(s.Body)))
	if err != nil {
		return Answer{}, err
	}
	if s.Body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	kind := s.ContentType
	if kind == "" {
		kind = "application/json"
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	resp, err := r.Client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"),
		Location: strings.TrimPrefix(resp.Header.Get("Location"), r.URL)}
	if json.Valid(b) {
		a.Body = b
	} else {
		a.Text = string(b)
	}
	return a, nil
}
