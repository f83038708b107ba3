package debezium

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// Offset is where Debezium has come to.
type Offset struct {
	// GTIDs is the set of what was published, but for the transaction in hand; File and
	// Pos are where to go on without GTIDs.
	GTIDs string `json:"gtids"`
	File  string `json:"file"`
	Pos   uint64 `json:"pos"`
}

// FindOffset looks in what a worker has written to offset.storage.file.filename, a
// Java-serialised map, for the offset of a connector. It reports whether there is one;
// members that can't be read are empty.
func FindOffset(data []byte, connector string) (o Offset, found bool) {
	name, err := json.Marshal(connector)
	if err != nil {
		return o, false
	}
	// The key is ["connector",{"server":"prefix"}], and its value comes next.
	_, rest, found := bytes.Cut(data, append(append([]byte("["), name...), ','))
	if !found {
		return o, false
	}
	_, rest, _ = bytes.Cut(rest, []byte("]"))
	if i := bytes.IndexByte(rest, '{'); i >= 0 {
		var read Offset
		if json.NewDecoder(bytes.NewReader(rest[i:])).Decode(&read) == nil {
			o = read
		}
	}
	return o, true
}

// offsets remembers where the worker kept the offsets of its connectors, so that a
// connector which Debezium has read for does not begin as if it were new.
func (c *connector) offsets() {
	if l, ok := c.worker.get("offset.storage.file.filename"); ok && l.value != "" && !c.own["source.debezium_offsets"] {
		c.set(l, "source.debezium_offsets", l.value)
	}
}

// unknownProviders refuses what is taken and refers to configuration providers that
// are not here.
func (c *connector) unknownProviders() {
	for i, l := range c.lines {
		value := c.pairs.values[l.Key]
		if l.File == c.worker.file && l.File != c.file {
			value = c.worker.pairs.values[l.Key]
		}
		if provider := config.UnknownProvider(c.worker.providers(value)); l.Outcome == Taken && provider != "" {
			c.lines[i].Outcome, c.lines[i].Setting = Unsupported, ""
			c.lines[i].Text = fmt.Sprintf("refers to the configuration provider %s, which is not here: have an agent or a driver write the secret to a file, and refer to that with ${file:PATH:KEY} or ${file:PATH}", provider)
		}
	}
}
