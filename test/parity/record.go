package parity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Result is what became of a case.
type Result struct {
	// Refused is why the configuration was not taken at all.
	Refused string `json:"refused,omitempty"`
	// Failed is the exception that ended the task, with its causes.
	Failed string `json:"failed,omitempty"`
	// Records are in the order of topic, partition and offset.
	Records []Record `json:"records,omitempty"`
}

func (r *Result) stopped() bool { return r.Failed != "" || r.Refused != "" }

// Record is one record on a topic.
type Record struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers,omitempty"`
	// Time is the timestamp in milliseconds; 0 stands for the time of the run.
	Time int64 `json:"time,omitempty"`
}

// Header is a record header.
type Header struct {
	Name  string
	Value Bytes
}

// MarshalJSON writes [name, value].
func (h Header) MarshalJSON() ([]byte, error) { return marshal([]any{h.Name, h.Value}) }

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Header) UnmarshalJSON(b []byte) error {
	pair := []any{&h.Name, &h.Value}
	return json.Unmarshal(b, &pair)
}

// Bytes are a key or a value; nil is null. In JSON they are a text where they are
// one, an object {"base64"} where not, and {"sha256", "size"} when there are many.
type Bytes []byte

const maxStored = 8 << 10

type storedBytes struct {
	Base64 string `json:"base64,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int    `json:"size,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	switch {
	case b == nil:
		return []byte("null"), nil
	case len(b) > maxStored:
		sum := sha256.Sum256(b)
		return marshal(storedBytes{SHA256: hex.EncodeToString(sum[:]), Size: len(b)})
	case utf8.Valid(b):
		return marshal(string(b))
	default:
		return marshal(storedBytes{Base64: base64.StdEncoding.EncodeToString(b)})
	}
}

// UnmarshalJSON implements json.Unmarshaler. Bytes that were too many come back as
// their checksum.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	*b = nil
	switch text[0] {
	case 'n':
		return nil
	case '"':
		var s string
		err := json.Unmarshal(text, &s)
		*b = append(Bytes{}, s...)
		return err
	}
	var s storedBytes
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.SHA256 != "" {
		*b = summary(s.SHA256, s.Size)
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(s.Base64)
	*b = raw
	return err
}

func summary(sum string, size int) Bytes { return fmt.Appendf(nil, "%d bytes, sha256 %s", size, sum) }

// marshal leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

var (
	runID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	arrayHash = regexp.MustCompile(`\[B@[0-9a-f]{1,8}`)
)

const runIDHeader = "__debezium.context.runId"

// normal replaces what is different in each run: the run id, which must be a UUID
// of version 7, the identity of Java arrays, and bytes that are too many.
func (r *Record) normal(id string) {
	cut := func(b Bytes) Bytes {
		if len(b) > maxStored {
			sum := sha256.Sum256(b)
			return summary(hex.EncodeToString(sum[:]), len(b))
		}
		return arrayHash.ReplaceAll(b, []byte("[B@<hash>"))
	}
	r.Key, r.Value = keepNil(r.Key, cut), keepNil(r.Value, cut)
	for i := range r.Headers {
		h := &r.Headers[i]
		h.Value = keepNil(h.Value, cut)
		if h.Name == runIDHeader {
			h.Value = runID.ReplaceAll(h.Value, []byte("<uuid>"))
		}
	}
	r.Headers = foldContext(r.Headers, id)
}

func keepNil(b Bytes, f func(Bytes) Bytes) Bytes {
	if b == nil {
		return nil
	}
	return append(Bytes{}, f(b)...)
}

// contextHeaders stands for the four context headers in their usual form.
const contextHeaders = "__debezium.context.*"

func foldContext(headers []Header, id string) []Header {
	want := []Header{
		{"__debezium.context.connectorLogicalName", Bytes(id)}, {"__debezium.context.taskId", Bytes("0")},
		{"__debezium.context.connectorName", Bytes("mysql")}, {runIDHeader, Bytes("<uuid>")},
	}
	for i := 0; i+len(want) <= len(headers); i++ {
		if slices.EqualFunc(headers[i:i+len(want)], want, func(a, b Header) bool {
			return a.Name == b.Name &&
				bytes.Equal(a.Value, b.Value)
		}) {
			return slices.Concat(headers[:i], []Header{{contextHeaders, nil}}, headers[i+len(want):])
		}
	}
	return headers
}

// Store holds the results of all cases by group and name.
type Store map[string]map[string]Result

// Load reads the files of a folder.
func Load(dir string) (Store, error) {
	s := Store{}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		group := map[string]Result{}
		if err := json.Unmarshal(text, &group); err != nil {
			return nil, fmt.Errorf("reading %s: %w", f, err)
		}
		s[strings.TrimSuffix(filepath.Base(f), ".json")] = group
	}
	return s, nil
}

// Get returns the result of a case.
func (s Store) Get(c *Case) (Result, bool) {
	r, ok := s[c.Group][c.Name]
	return r, ok
}

// Put sets the result of a case.
func (s Store) Put(c *Case, r Result) {
	if s[c.Group] == nil {
		s[c.Group] = map[string]Result{}
	}
	s[c.Group][c.Name] = r
}

// Keep drops what belongs to none of the cases.
func (s Store) Keep(cases []Case) {
	known := map[string]bool{}
	for i := range cases {
		known[cases[i].Group+"\x00"+cases[i].Name] = true
	}
	for group, results := range s {
		maps.DeleteFunc(results, func(name string, _ Result) bool { return !known[group+"\x00"+name] })
	}
}

// Save writes one file for each group, one line for each record.
func (s Store) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for group, results := range s {
		path := filepath.Join(dir, group+".json")
		if len(results) == 0 {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		text, err := encodeGroup(results)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func encodeGroup(results map[string]Result) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{")
	separator := "\n"
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		key, err := marshal(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s%s: {", separator, key)
		separator = ",\n"
		inner := "\n  "
		for _, f := range []struct{ key, value string }{{"refused", r.Refused}, {"failed", r.Failed}} {
			if f.value != "" {
				text, err := marshal(f.value)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(&b, "%s%q: %s", inner, f.key, text)
				inner = ",\n  "
			}
		}
		if len(r.Records) > 0 {
			fmt.Fprintf(&b, "%s\"records\": [", inner)
			for i := range r.Records {
				line, err := marshal(r.Records[i])
				if err != nil {
					return nil, err
				}
				if i > 0 {
					b.WriteString(",")
				}
				b.WriteString("\n    ")
				b.Write(line)
			}
			b.WriteString("\n  ]")
		}
		b.WriteString("\n}")
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}
