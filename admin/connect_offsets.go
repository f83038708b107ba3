package admin

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/binlog-outbox/binlog-outbox/ha"
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

const notStopped = "Connectors must be in the STOPPED state before their offsets can be modified. This can be done " +
	"for the specified connector by issuing a 'PUT' request to the '/connectors/%s/stop' endpoint"

// stopped finds the connector whose offsets are to be changed.
func (a *ConnectAPI) stopped(r *http.Request) (*ConnectConnector, error) {
	c, err := a.named(r)
	switch {
	case err != nil:
		return nil, err
	case c.Wanted.State != ha.Stopped:
		return nil, refused(http.StatusBadRequest, notStopped, c.Name)
	}
	return c, nil
}

func (a *ConnectAPI) alterOffsets(r *http.Request) (httpAnswer, error) {
	var body struct {
		Offsets []struct {
			Partition map[string]any  `json:"partition"`
			Offset    json.RawMessage `json:"offset"`
		} `json:"offsets"`
	}
	if err := readConnectBody(r, &body); err != nil {
		return httpAnswer{}, err
	}
	if len(body.Offsets) == 0 {
		return httpAnswer{}, refused(http.StatusBadRequest,
			"Partitions / offsets need to be provided for an alter offsets request")
	}
	c, err := a.stopped(r)
	if err != nil {
		return httpAnswer{}, err
	}
	if len(body.Offsets) > 1 {
		return httpAnswer{}, refused(http.StatusBadRequest,
			"A connector has one partition, {\"server\": %q}; give one offset", c.Server)
	}
	one := body.Offsets[0]
	if server, _ := one.Partition["server"].(string); len(one.Partition) != 1 || server != c.Server {
		return httpAnswer{}, refused(http.StatusBadRequest,
			"The partition of connector %s is {\"server\": %q}, its topic.prefix", c.Name, c.Server)
	}
	if isNull(one.Offset) {
		return a.setOffset(r, c, OffsetRequest{Reset: true}, "reset")
	}
	return a.setOffset(r, c, OffsetRequest{Debezium: &DebeziumOffset{Offset: one.Offset}}, "altered")
}

func (a *ConnectAPI) resetOffsets(r *http.Request) (httpAnswer, error) {
	c, err := a.stopped(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return a.setOffset(r, c, OffsetRequest{Reset: true}, "reset")
}

func (a *ConnectAPI) setOffset(r *http.Request, c *ConnectConnector, request OffsetRequest,
	what string) (httpAnswer, error) {
	if _, err := a.control.SetOffset(r.Context(), c.Name, request, actor(r)); err != nil {
		return httpAnswer{}, err
	}
	return ok(map[string]string{"message": "The offsets for this connector have been " + what + " successfully"})
}

// isNull reports an offset that is null or left out, which forgets the position.
func isNull(offset json.RawMessage) bool {
	return len(offset) == 0 || bytes.Equal(offset, []byte("null"))
}
