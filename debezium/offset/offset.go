package offset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Offset is a place in the binlog as Debezium notes it.
type Offset struct {
	// GTIDs is the set of what was read as a whole: without the transaction at hand.
	// Empty when the source gave none.
	GTIDs string
	// File and Pos are where the transaction at hand begins, or where the last one ended.
	File string
	Pos  uint64
	// Event counts the events of the transaction at hand that are done, with its BEGIN, and
	// Row the rows of the next one.
	Event, Row uint64
	// Second is when the transaction of the last row was committed, in seconds since 1970;
	// 0 when that is not known.
	Second int64
}

// ErrSnapshot is an offset inside of a snapshot, which nobody else can go on with.
var ErrSnapshot = errors.New("it is inside of a snapshot: which rows are published is not known. Let Debezium " +
	"finish the snapshot, and send one row after it, before it is stopped; or begin anew here")

// known are the members that say nothing here.
var known = []string{"server_id", "snapshot_completed"}

// Parse reads an offset's JSON object. ErrSnapshot says that it can't be taken over;
// other errors say what is wrong with it.
func Parse(data []byte) (Offset, error) {
	var o Offset
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&members); err != nil || members == nil {
		return o, errors.New("the offset is not a JSON object")
	}
	// Debezium before 1.5 wrote the schema as well.
	if payload, ok := members["payload"].(map[string]any); ok && len(members) <= 2 {
		members = payload
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := o.member(name, members[name]); err != nil {
			return o, err
		}
	}
	if o.GTIDs == "" && o.File == "" {
		return o, errors.New("the offset has neither gtids nor a file")
	}
	return o, nil
}

func (o *Offset) member(name string, value any) (err error) {
	number := func() (n uint64) {
		if n, err = whole(value); err != nil {
			err = fmt.Errorf("the offset's %s is not a number", name)
		}
		return n
	}
	text, isText := value.(string)
	switch {
	case value == nil:
	case name == "gtids" && isText:
		o.GTIDs = strings.Join(strings.Fields(text), "")
	case name == "file" && isText:
		o.File = text
	case name == "pos":
		o.Pos = number()
	case name == "event":
		o.Event = number()
	case name == "row":
		o.Row = number()
	case name == "ts_sec":
		o.Second = int64(number())
	case name == "snapshot":
		if on := strings.ToLower(fmt.Sprint(value)); on != "false" {
			return ErrSnapshot
		}
	case strings.HasPrefix(name, "incremental_snapshot_"):
		if text != "" && text != "[]" {
			return ErrSnapshot
		}
	case strings.HasPrefix(name, "transaction_"), slices.Contains(known, name):
	default:
		return fmt.Errorf("the offset's %s is not known here", name)
	}
	return err
}

// whole reads a number, or a text of one, which Debezium takes, too.
func whole(value any) (uint64, error) {
	text, ok := value.(string)
	if n, isNumber := value.(json.Number); isNumber {
		text, ok = n.String(), true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil || n > math.MaxInt64 {
		return 0, errors.New("not a number")
	}
	return n, nil
}

// Key says whose an offset is.
type Key struct {
	// Connector is the name on the worker. Debezium Server's is the kind of its sink.
	Connector string
	// Server is the connector's topic.prefix.
	Server string
}

func (k Key) String() string { return fmt.Sprintf("%s (topic.prefix %s)", k.Connector, k.Server) }

// ParseKey reads the key under which an offset is stored: a list of the connector's name
// and its partition. ok is false for another connector's, whose partition is of another kind.
func ParseKey(data []byte) (k Key, ok bool) {
	var schemaless []json.RawMessage
	if json.Unmarshal(data, &schemaless) != nil {
		var withSchema struct {
			Payload []json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(data, &withSchema) != nil {
			return k, false
		}
		schemaless = withSchema.Payload
	}
	var partition map[string]string
	if len(schemaless) != 2 || json.Unmarshal(schemaless[0], &k.Connector) != nil || json.Unmarshal(schemaless[1],
		&partition) != nil {
		return k, false
	}
	k.Server, ok = partition["server"]
	return k, ok && len(partition) == 1
}

// ParseREST reads the answer of GET /connectors/{name}/offsets: the JSON of the one offset
// that a connector has, of the partition with this topic.prefix. A connector that has none
// yet has nil.
func ParseREST(body []byte, server string) (json.RawMessage, error) {
	var answer struct {
		Offsets []struct {
			Partition map[string]any  `json:"partition"`
			Offset    json.RawMessage `json:"offset"`
		} `json:"offsets"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errors.New("the answer is not one to GET /connectors/{name}/offsets")
	}
	var others []string
	for _, one := range answer.Offsets {
		if name, ok := one.Partition["server"].(string); ok && len(one.Partition) == 1 && (name == server || server == "") {
			return one.Offset, nil
		}
		others = append(others, fmt.Sprint(one.Partition))
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("the connector has offsets of other partitions than {\"server\": %q}: %s", server,
			strings.Join(others, ", "))
	}
	return nil, nil
}

// IncludeQuery is the key of a connector that has MariaDB send annotate events.
const IncludeQuery = "include.query"

// ConfigKeys are the keys of a connector by which it is known what an offset of its counts.
// None of their values is secret.
var ConfigKeys = []string{IncludeQuery, "table.include.list", "table.exclude.list", "database.include.list",
	"database.exclude.list"}
