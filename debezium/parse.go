package debezium

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/magiconair/properties"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// pairs are the keys of a file in their order, with their values.
type pairs struct {
	order  []string
	values map[string]string
}

func (p *pairs) set(key, value string) {
	if p.values == nil {
		p.values = map[string]string{}
	}
	if _, ok := p.values[key]; !ok {
		p.order = append(p.order, key)
	}
	p.values[key] = value
}

// parseConnector reads JSON, or properties when the text does not begin with "{".
func parseConnector(f File) (*pairs, *config.Problem) {
	if !bytes.HasPrefix(bytes.TrimSpace(f.Data), []byte("{")) {
		return parseProperties(f)
	}
	p, err := parseJSON(f.Data)
	if err != nil {
		return nil, &config.Problem{Origin: jsonOrigin(f, err), Message: err.Error()}
	}
	return p, nil
}

// parseProperties reads a Java properties file as Kafka does: ISO-8859-1 with
// \u escapes; what looks like ${a} stays as it is.
func parseProperties(f File) (*pairs, *config.Problem) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	list, err := loader.LoadBytes(f.Data)
	if err != nil {
		// The library's error may quote the file.
		return nil, &config.Problem{Origin: config.Origin{File: f.Name},
			Message: "not a Java properties file; check its \\u escapes"}
	}
	out := &pairs{}
	for _, key := range list.Keys() {
		value, _ := list.Get(key)
		out.set(key, value)
	}
	return out, nil
}

// parseJSON reads {"name": ..., "config": {...}} or a flat object. As Connect
// does it takes numbers and booleans for texts.
func parseJSON(data []byte) (*pairs, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	top, err := readObject(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text behind the JSON object; a file holds one connector")
	}
	inner, wrapped := top.objects["config"]
	if !wrapped {
		return top.flat()
	}
	out, err := inner.flat()
	if err != nil {
		return nil, err
	}
	for _, key := range top.order {
		switch value := top.values[key]; key {
		case "config":
		case "name":
			if have, ok := out.values["name"]; ok && have != value {
				return nil, fmt.Errorf("the name is %q outside and %q inside of \"config\"; Connect refuses that too", value, have)
			}
			if _, ok := out.values["name"]; !ok {
				out.set("name", value)
				out.order = append([]string{"name"}, out.order[:len(out.order)-1]...)
			}
		case "initial_state", "tasks", "type":
			// What GET /connectors/<name> adds says nothing about the connector.
			if value != "" && !strings.EqualFold(value, "running") && key == "initial_state" {
				return nil, fmt.Errorf("initial_state %s is not possible; take it out and pause the connector once it runs", value)
			}
		default:
			return nil, fmt.Errorf("%q stands beside \"config\" and means nothing there", key)
		}
	}
	return out, nil
}

// object is a JSON object of texts and objects.
type object struct {
	pairs

	objects map[string]*object
	odd     []string // keys whose values are lists
}

func (o *object) flat() (*pairs, error) {
	for _, key := range o.order {
		if o.objects[key] != nil || slices.Contains(o.odd, key) {
			return nil, fmt.Errorf("%q is not a text; in a connector's configuration all values are", key)
		}
	}
	return &o.pairs, nil
}

const maxJSONDepth = 8

func readObject(d *json.Decoder) (*object, error) {
	t, err := d.Token()
	if err != nil {
		return nil, jsonError(d, err)
	}
	if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	return readMembers(d, 0)
}

func readMembers(d *json.Decoder, depth int) (*object, error) {
	if depth > maxJSONDepth {
		return nil, errors.New("nested too deeply")
	}
	o := &object{objects: map[string]*object{}}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, jsonError(d, err)
		}
		key, _ := t.(string) // the decoder lets nothing else stand here
		if _, ok := o.values[key]; ok {
			return nil, fmt.Errorf("%q is given twice", key)
		}
		if t, err = d.Token(); err != nil {
			return nil, jsonError(d, err)
		}
		switch value := t.(type) {
		case json.Delim:
			o.set(key, "")
			if value == '{' {
				if o.objects[key], err = readMembers(d, depth+1); err != nil {
					return nil, err
				}
				continue
			}
			o.odd = append(o.odd, key)
			if err := skipList(d); err != nil {
				return nil, err
			}
		case nil: // Connect takes null for not given
		default:
			o.set(key, fmt.Sprint(value))
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, jsonError(d, err)
	}
	return o, nil
}

func skipList(d *json.Decoder) error {
	for open := 1; open > 0; {
		t, err := d.Token()
		if err != nil {
			return jsonError(d, err)
		}
		if delim, ok := t.(json.Delim); ok {
			if delim == '[' || delim == '{' {
				open++
			} else {
				open--
			}
		}
	}
	return nil
}

// positioned is an error at an offset of the file.
type positioned struct {
	offset int64
	text   string
}

func (e *positioned) Error() string { return e.text }

func jsonError(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &positioned{d.InputOffset(), "not valid JSON: it ends too early"}
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &positioned{s.Offset, "not valid JSON: " + s.Error()}
	}
	return &positioned{d.InputOffset(), "not valid JSON: " + err.Error()}
}

func jsonOrigin(f File, err error) config.Origin {
	o := config.Origin{File: f.Name}
	if p, ok := errors.AsType[*positioned](err); ok {
		before := f.Data[:min(int(p.offset), len(f.Data))]
		o.Line = 1 + bytes.Count(before, []byte("\n"))
		o.Column = max(1, len(before)-1-bytes.LastIndexByte(before, '\n'))
	}
	return o
}
