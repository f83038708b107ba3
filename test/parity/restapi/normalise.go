package restapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var stackFrames = regexp.MustCompile(`(\\n\\tat [^"\\]*|\\n\\t\.\.\. \d+ more)+`)

// Normalise replaces what differs from run to run: ports, folders, and Java's stack
// frames. Of long lists and of long objects it keeps some.
func Normalise(r *Recording, worker string, databasePort int, dir string) {
	u, err := url.Parse(worker)
	if err != nil {
		return
	}
	port := strconv.Itoa(databasePort)
	replace := strings.NewReplacer(u.Host, "<worker>", dir, "<dir>", `"`+port+`"`, `"<port>"`, ":"+port, ":<port>",
		"="+port, "=<port>")
	for name, a := range r.Answers {
		text := stackFrames.ReplaceAllString(replace.Replace(string(a.Body)), "<frames>")
		if a.Body != nil && json.Valid([]byte(text)) {
			a.Body = cutLong(text)
		}
		a.Text = replace.Replace(a.Text)
		r.Answers[name] = a
	}
}

// The most that is kept of a list, of an object and of a text. A configuration fits.
const (
	maxList   = 6
	maxObject = 30
	maxText   = 400
)

func cutLong(text string) json.RawMessage {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(text)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(cut(v)) != nil {
		return json.RawMessage(text)
	}
	return bytes.TrimSpace(b.Bytes())
}

func cut(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > maxText {
			return v[:maxText] + "..."
		}
	case []any:
		if len(v) > maxList {
			v = v[:maxList]
		}
		for i := range v {
			v[i] = cut(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			if v[key] = cut(v[key]); len(v) > maxObject {
				delete(v, key)
			}
		}
	}
	return v
}
