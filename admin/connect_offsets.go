package admin

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// connectOffset is one entry of offsets: partition and offset of Debezium's MySQL
// connector.
type connectOffset struct {
	Partition map[string]any `json:"partition"`
	Offset    map[string]any `json:"offset"`
}

func (a *ConnectAPI) offsets(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	out := []connectOffset{}
	if offset := debeziumOffset(&c.Position); len(offset) > 0 {
		out = append(out, connectOffset{map[string]any{"server": c.Server}, offset})
	}
	return ok(map[string]any{"offsets": out})
}

// debeziumOffset writes a position, which is always the end of a transaction, as
// Debezium does.
func debeziumOffset(p *Position) map[string]any {
	out := map[string]any{}
	if p.File != "" {
		out["file"], out["pos"] = p.File, p.Pos
	}
	if p.GTIDSet != "" {
		out["gtids"] = p.GTIDSet
	}
	if len(out) > 0 && p.EventTime != nil {
		out["ts_sec"] = p.EventTime.Unix()
	}
	return out
}

const notStopped = "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified connector by issuing a 'PUT' request to the '/connectors/%s/stop' endpoint"

// stopped finds the connector whose offsets are to be changed.
func (a *ConnectAPI) stopped(r *http.Request) (*ConnectConnector, error) {
	c, err := a.named(r)
	switch {
	case err != nil:
		return nil, err
	case c.Wanted.State != Stopped:
		return nil, refused(http.StatusBadRequest, notStopped, c.Name)
	}
	return c, nil
}

func (a *ConnectAPI) alterOffsets(r *http.Request) (httpAnswer, error) {
	var body struct {
		Offsets []connectOffset `json:"offsets"`
	}
	if err := readConnectBody(r, &body); err != nil {
		return httpAnswer{}, err
	}
	if len(body.Offsets) == 0 {
		return httpAnswer{}, refused(http.StatusBadRequest, "Partitions / offsets need to be provided for an alter offsets request")
	}
	c, err := a.stopped(r)
	if err != nil {
		return httpAnswer{}, err
	}
	if len(body.Offsets) > 1 {
		return httpAnswer{}, refused(http.StatusBadRequest, "A connector has one partition, {\"server\": %q}; give one offset", c.Server)
	}
	one := body.Offsets[0]
	if server, _ := one.Partition["server"].(string); len(one.Partition) != 1 || server != c.Server {
		return httpAnswer{}, refused(http.StatusBadRequest, "The partition of connector %s is {\"server\": %q}, its topic.prefix", c.Name, c.Server)
	}
	choice, err := offsetChoice(one.Offset)
	if err != nil {
		return httpAnswer{}, err
	}
	what := "altered"
	if choice.Reset {
		what = "reset"
	}
	return a.setOffset(r, c, choice, what)
}

func (a *ConnectAPI) resetOffsets(r *http.Request) (httpAnswer, error) {
	c, err := a.stopped(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return a.setOffset(r, c, OffsetChoice{Reset: true}, "reset")
}

func (a *ConnectAPI) setOffset(r *http.Request, c *ConnectConnector, choice OffsetChoice, what string) (httpAnswer, error) {
	if _, err := a.control.SetOffset(r.Context(), c.Name, choice, order(r)); err != nil {
		return httpAnswer{}, err
	}
	return ok(map[string]string{"message": "The offsets for this connector have been " + what + " successfully"})
}

// insideTransaction are the members that say how much of the transaction behind the
// position was read. It comes again from its beginning, so that nothing is lost.
var insideTransaction = []string{"event", "row", "server_id", "ts_sec", "transaction_id"}

// offsetChoice reads an offset of Debezium. The GTID set counts where there is one,
// as in Debezium; null forgets the position.
func offsetChoice(offset map[string]any) (OffsetChoice, error) {
	if offset == nil {
		return OffsetChoice{Reset: true}, nil
	}
	var choice OffsetChoice
	for _, key := range slices.Sorted(maps.Keys(offset)) {
		value := offset[key]
		switch text, isText := value.(string); {
		case key == "gtids" && isText:
			choice.GTIDSet = strings.Join(strings.Fields(text), "")
		case key == "gtids" && value == nil:
		case key == "file" && isText:
			choice.File = text
		case key == "pos":
			n, err := json.Number(strings.Trim(string(encode(value)), `"`)).Int64()
			if err != nil || n < 0 {
				return choice, refused(http.StatusBadRequest, "The offset's pos is not a number")
			}
			choice.Pos = uint64(n)
		case strings.HasPrefix(key, "snapshot") && value != nil && value != false:
			return choice, refused(http.StatusBadRequest, "An offset inside of a snapshot (%s) can't be taken over: let Debezium finish it, or begin anew with a reset", key)
		case slices.Contains(insideTransaction, key), value == nil, strings.HasPrefix(key, "snapshot"):
		default:
			return choice, refused(http.StatusBadRequest, "The offset's %s is not known here", key)
		}
	}
	switch {
	case choice.GTIDSet != "":
		choice.File, choice.Pos = "", 0
	case choice.File == "":
		return choice, refused(http.StatusBadRequest, "The offset has neither gtids nor a file")
	}
	return choice, nil
}
