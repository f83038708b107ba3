package debezium

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// Outcome says what became of one key of a Debezium or Kafka Connect file.
type Outcome int

// The outcomes, from the best to the worst.
const (
	// Taken keys became one or more settings.
	Taken Outcome = iota
	// Default keys ask for what happens anyway.
	Default
	// Harmless keys have no meaning here, and no consumer can tell.
	Harmless
	// Unsupported keys change what consumers get, or what is promised, in a way
	// that is not possible here. They are refused.
	Unsupported
	// Unknown keys are none of Debezium's or Kafka Connect's. Debezium passes over
	// them in silence; here they are refused unless Options tolerate them.
	Unknown
)

// String returns the word that "config convert" prints.
func (o Outcome) String() string {
	return [...]string{"taken", "default", "ignored", "unsupported", "unknown"}[o]
}

// Line is what became of one key. It never holds the value of a password.
type Line struct {
	File    string
	Key     string
	Outcome Outcome
	// Setting is the path of the setting that the key became, if any.
	Setting string
	// Text says why, and for a refused key what to do.
	Text string
}

// String is one line for people.
func (l Line) String() string {
	text := l.Text
	if l.Outcome == Taken && l.Setting != "" {
		text = strings.TrimSuffix(l.Setting+"; "+l.Text, "; ")
	}
	return l.File + ": " + shownKey(l.Key) + ": " + l.Outcome.String() + ": " + text
}

// File is a file as it was read.
type File struct {
	Name string
	Data []byte
}

// Options are what Convert reads.
type Options struct {
	// Worker is the properties file of the Connect worker; nil for none.
	Worker *File
	// Connectors are connector files: JSON, {"name", "config"} or flat, or the
	// properties that connect-standalone takes.
	Connectors []File
	// Release is the release of Debezium to follow where the files do not say
	// (binlog.outbox.debezium.compat); empty for the default. It decides which options
	// count.
	Release string
	// TolerateUnknown passes over unknown keys, as Debezium does.
	TolerateUnknown bool
}

// Conversion is the result of Convert.
type Conversion struct {
	// Settings make the configuration, as a layer for config.Build. References
	// such as ${file:...} are kept.
	Settings []config.Setting
	// Lines hold every key of the files, in their order.
	Lines []Line

	tolerate bool
}

// Convert turns Debezium's files over. The error is of type config.Problems and
// lists all that stands in the way; the Conversion is returned beside it, so that
// the lines can be shown.
func Convert(o Options) (*Conversion, error) {
	out := &Conversion{tolerate: o.TolerateUnknown}
	var problems config.Problems
	w := &worker{}
	if o.Worker != nil {
		values, err := parseProperties(*o.Worker)
		if err != nil {
			return out, config.Problems{*err}
		}
		w = newWorker(o.Worker.Name, values)
		out.add(&w.conversion)
	}
	for i, f := range o.Connectors {
		values, err := parseConnector(f)
		if err != nil {
			problems = append(problems, *err)
			continue
		}
		c := newConnector(f.Name, i, values, w)
		c.release = o.Release
		c.convert()
		out.add(&c.conversion)
	}
	out.unusedOf(w)
	problems = append(problems, out.Problems()...)
	if len(problems) > 0 {
		return out, problems
	}
	return out, nil
}

func (c *Conversion) add(part *conversion) {
	c.Settings = append(c.Settings, part.settings...)
	for _, l := range part.lines {
		if !slices.Contains(c.Lines, l) {
			c.Lines = append(c.Lines, l)
		}
	}
}

// unusedOf adds the worker's keys that every connector has an answer of its own to.
func (c *Conversion) unusedOf(w *worker) {
	told := map[string]bool{}
	for _, l := range c.Lines {
		if l.File == w.file {
			told[l.Key] = true
		}
	}
	for _, key := range w.pairs.order {
		if !told[key] {
			c.Lines = append(c.Lines, Line{File: w.file, Key: key, Outcome: Harmless, Text: "every connector has its own"})
		}
	}
}

// Problems returns the refused keys; nil when there are none.
func (c *Conversion) Problems() config.Problems {
	var out config.Problems
	for _, l := range c.Lines {
		if l.Outcome == Unsupported || l.Outcome == Unknown && !c.tolerate {
			out = append(out, config.Problem{
				Origin: config.Origin{File: l.File, Key: shownKey(l.Key)}, Message: l.Text,
			})
		}
	}
	return out
}

// Layer returns the settings as a layer for config.Build. Its connectors come after
// those of the layers before.
func (c *Conversion) Layer() config.Layer { return config.Append(c.Settings...) }

// located is a value with the place where it was found.
type located struct {
	file, key, value string
}

func (l located) origin() config.Origin { return config.Origin{File: l.file, Key: shownKey(l.key)} }

// shownKey is a key as it may be shown: a salt is a part of some.
func shownKey(key string) string {
	if before, _, ok := strings.Cut(key, ".with.salt."); ok {
		return before + ".with.salt.***"
	}
	return key
}

// hasReference reports whether the value can only be known when it is read.
func (l located) hasReference() bool { return config.HasReference(l.value) }

// word returns the value as Debezium compares enumerations: trimmed, lower case.
func (l located) word() string { return strings.ToLower(strings.TrimSpace(l.value)) }

// conversion collects lines and settings.
type conversion struct {
	// prefix is put before the paths of settings ("connectors[0].").
	prefix   string
	lines    []Line
	settings []config.Setting
	handled  map[string]bool
}

func (c *conversion) line(l located, outcome Outcome, path, text string) {
	c.handled[l.key] = true
	c.lines = append(c.lines, Line{File: l.file, Key: l.key, Outcome: outcome, Setting: path, Text: text})
}

// take makes the setting at path, which is within the connector.
func (c *conversion) take(l located, path string, value any, text string) {
	c.set(l, path, value)
	c.line(l, Taken, path, text)
}

// set makes a setting without a line of its own.
func (c *conversion) set(l located, path string, value any) {
	c.settings = append(c.settings, config.Setting{Path: c.prefix + path, Value: value, Origin: l.origin()})
}

func (c *conversion) same(l located, text string)     { c.line(l, Default, "", text) }
func (c *conversion) harmless(l located, text string) { c.line(l, Harmless, "", text) }
func (c *conversion) refuse(l located, text string)   { c.line(l, Unsupported, "", text) }

func (c *conversion) unknown(l located, candidates []string) {
	text := "not a key of Debezium or Kafka Connect; take it out"
	if near := config.Nearest(l.key, candidates); near != "" {
		text = "not a key of Debezium or Kafka Connect; did you mean " + strconv.Quote(near) + "?"
	}
	c.line(l, Unknown, "", text)
}

// sortLines puts the lines into the order of the keys in the file.
func (c *conversion) sortLines(order []string) {
	place := map[string]int{}
	for i, key := range order {
		place[key] = i
	}
	slices.SortStableFunc(c.lines, func(a, b Line) int { return cmp.Compare(place[a.Key], place[b.Key]) })
}
