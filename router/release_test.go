package router

import (
	"testing"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/schema"
)

func TestFollowARelease(t *testing.T) {
	table := &schema.Table{Name: schema.Name{Database: "db", Table: "outbox"}, PrimaryKey: []int{0},
		Columns: []schema.Column{
			{Name: "id", Type: schema.TinyInt}, {Name: "aggregatetype", Type: schema.VarChar},
			{Name: "aggregateid", Type: schema.VarChar},
			{Name: "payload", Type: schema.Text, Nullable: true}, {Name: "at", Type: schema.Timestamp, Nullable: true},
		}}
	row := &schema.Row{Table: table, Op: schema.Insert, After: []any{int64(5), "User", "k", `{"x":[[{"a":{"b":1}}]]}`,
		"0000-00-00 00:00:00"}}
	for _, test := range []struct {
		release  string
		context  int
		zero     any
		envelope bool // a missing column may be ignored there
		id       converter.Kind
		nested   string
	}{
		{"2.7", 0, "1970-01-01T00:00:00Z", false, converter.Int16, "null.a"},
		{"3.1", 0, "1970-01-01T00:00:00Z", false, converter.Int16, "a"},
		{"3.2", 3, "1970-01-01T00:00:00Z", false, converter.Int16, "a"},
		{"3.3", 3, "1970-01-01T00:00:00Z", false, converter.Int16, "a"},
		{"3.5", 4, "1970-01-01T00:00:00Z", false, converter.Int16, "a"},
		{"3.6", 4, nil, true, converter.Int16, "a"},
		{"3.7", 4, nil, true, converter.Int8, "a"},
	} {
		t.Run(test.release, func(t *testing.T) {
			follow := func(placements ...Placement) (*Event, error) {
				r := newRouter(t, func(c *Config) {
					c.Placements, c.MissingAdditional, c.ExpandJSON = placements, MissingIgnore, true
					c.Context = ContextHeaders("shop", "run")
					c.Follow(test.release)
				})
				ev := &Event{}
				_, err := r.Route(ev, row, Info{})
				return ev, err
			}
			ev, err := follow(Placement{Column: "at", Where: PlaceHeader})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(ev.Headers) - 2; got != test.context {
				t.Errorf("%d context headers, want %d", got, test.context)
			}
			if got := ev.Headers[len(ev.Headers)-1].Value; got != test.zero {
				t.Errorf("a TIMESTAMP of zeros is %v, want %v", got, test.zero)
			}
			if got := ev.Headers[len(ev.Headers)-2].Schema.Kind; got != test.id {
				t.Errorf("TINYINT is of kind %v, want %v", got, test.id)
			}
			if got := ev.Value.Schema.Fields[0].Schema.Elem.Elem.Fields[0].Schema.Name; got != test.nested {
				t.Errorf("a record below a nested array is called %q, want %q", got, test.nested)
			}
			if _, err := follow(Placement{Column: "fake", Where: PlaceEnvelope}); (err == nil) != test.envelope {
				t.Errorf("a missing column for the envelope: %v", err)
			}
		})
	}
}

func TestTimestampsThatClientsGarble(t *testing.T) {
	table := &schema.Table{Name: schema.Name{Database: "db", Table: "outbox"}, Columns: []schema.Column{
		{Name: "id", Type: schema.Int}, {Name: "aggregatetype", Type: schema.VarChar},
		{Name: "aggregateid", Type: schema.VarChar},
		{Name: "payload", Type: schema.Text}, {Name: "at", Type: schema.DateTime},
	}}
	r := newRouter(t, func(c *Config) { c.Timestamp = "at" })
	for at, ok := range map[string]bool{"2262-04-11 23:47:16": true, "2262-04-11 23:47:17": false,
		"9999-12-31 23:59:59": false} {
		row := &schema.Row{Table: table, Op: schema.Insert, After: []any{int64(5), "User", "k", "x", at}}
		_, err := r.Route(&Event{}, row, Info{})
		if ok != (err == nil) || err != nil && code(t, err) != CodeInvalidTimestamp {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// Releases are compared by their numbers: 3.10 comes after 3.7.
func TestReleasesAreNumbers(t *testing.T) {
	for release, want := range map[string]bool{"3.6": false, "3.7": true, "3.10": true, "4.0": true, "10.0": true,
		"2.10": false} {
		c := DefaultConfig()
		c.Follow(release)
		if c.Modes.TinyIntIsInt8 != want {
			t.Errorf("%s: TINYINT as INT8 is %v", release, c.Modes.TinyIntIsInt8)
		}
	}
	c := DefaultConfig()
	if c.Follow("3.10"); c.nullPaths || c.missingEnvelopeFails {
		t.Errorf("3.10 is taken for an older release: %+v", c)
	}
}
