package config

import (
	"fmt"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// references returns the references in the setting or section at path, as they are
// written; "" for none.
func (b *builder) references(path string) string {
	var out []string
	for p, s := range b.origins {
		if s.raw != "" && (p == path || strings.HasPrefix(p, path+".") || strings.HasPrefix(p, path+"[")) {
			out = append(out, s.raw)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

var printVerb = regexp.MustCompile(`%[a-z]`)

// untold is a message about path without what references stand for. Where path itself
// holds one nothing that was made of its value is told, since a check may have changed
// or cut it; elsewhere the values are replaced by the references.
func (b *builder) untold(path, format string, args []any) string {
	refs := b.references(path)
	if refs == "" || !printVerb.MatchString(format) {
		return b.config.veiled(fmt.Sprintf(format, args...))
	}
	text := "what " + refs + " stands for is not possible here"
	if _, advice, ok := strings.Cut(format, ";"); ok && !printVerb.MatchString(advice) {
		text += ";" + advice
	}
	return text
}

// veil is what a reference stands for, and the reference.
type veil struct{ value, raw string }

// minVeil is the length of values that are hidden. A shorter one is no secret, and is
// found in too many words.
const minVeil = 3

// newVeils are those of one setting: of its value as a whole, of the host in it, and in
// the forms in which messages quote them.
func newVeils(s source) []veil {
	values := []string{s.value}
	if host, _, err := net.SplitHostPort(s.value); err == nil {
		values = append(values, host)
	}
	var out []veil
	for _, value := range values {
		quoted := strconv.Quote(value)
		for _, form := range []string{value, quoted[1 : len(quoted)-1]} {
			if len(form) >= minVeil && !slices.Contains(out, veil{form, s.raw}) {
				out = append(out, veil{form, s.raw})
			}
		}
	}
	return out
}

// veil notes what the references in texts stand for. One of a few words, or a number, is
// no secret.
func (c *Config) veil(table map[string]field) {
	for path, s := range c.origins {
		general := generalPath(path)
		t := typeOf(general)
		isText := t == nil || t.Kind() == reflect.String || t.Kind() == reflect.Slice || t.Kind() == reflect.Map
		number, rest, inConnector := strings.Cut(strings.TrimPrefix(path, "connectors["), "]")
		i, err := strconv.Atoi(number)
		if s.value == "" || !isText || len(table[general].enum) > 0 {
			continue
		}
		if !inConnector || err != nil || i >= len(c.Connectors) || rest == "" {
			c.veils = append(c.veils, newVeils(s)...)
			continue
		}
		c.Connectors[i].veils = append(c.Connectors[i].veils, newVeils(s)...)
	}
	for i := range c.Connectors {
		// A longer value may hold a shorter one.
		slices.SortFunc(c.Connectors[i].veils, func(a, b veil) int { return len(b.value) - len(a.value) })
	}
}

// veiled hides in a message about the configuration what references stand for.
func (c *Config) veiled(text string) string {
	for _, v := range c.veils {
		text = v.hide(text)
	}
	for i := range c.Connectors {
		text = c.Connectors[i].Veil(text)
	}
	return text
}

// Veils reports whether Veil changes anything.
func (c *Connector) Veils() bool { return len(c.veils) > 0 }

// Veil returns a text about the connector, such as an error of a server that names its
// address, with the references of the configuration in place of what they stand for.
func (c *Connector) Veil(text string) string {
	for _, v := range c.veils {
		text = v.hide(text)
	}
	return text
}

// hide replaces the value where it stands as words of its own.
func (v veil) hide(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, v.value)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(v.value)
		b.WriteString(text[:i])
		if i > 0 && inWord(text[i-1]) && inWord(v.value[0]) || end < len(text) && inWord(text[end]) &&
			inWord(v.value[len(v.value)-1]) {
			b.WriteString(v.value)
		} else {
			b.WriteString(v.raw)
		}
		text = text[end:]
	}
}

func inWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
