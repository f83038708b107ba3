package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// maxBody bounds a request's body in bytes. A GTID set of thousands of servers
	// fits.
	maxBody = 1 << 20
	// maxReason bounds who and why, which are kept.
	maxReason = 1000
)

// The headers in which a write without a body says who asks for it and why.
const (
	ReasonHeader = "Binlog-Outbox-Reason"
	ByHeader     = "Binlog-Outbox-By"
)

// actorFields are in the body of every write.
type actorFields struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// readActor reads the body of a write into into, which embeds actorFields; nil
// stands for a body of these alone. The reason may be given in a header instead,
// for clients that send no body.
func readActor(w http.ResponseWriter, r *http.Request, into any, said *actorFields) (Actor, error) {
	if err := readBody(w, r, into); err != nil {
		return Actor{}, err
	}
	reason, by := said.Reason, said.By
	if reason == "" {
		reason = r.Header.Get(ReasonHeader)
	}
	if by == "" {
		by = r.Header.Get(ByHeader)
	}
	reason, by = strings.TrimSpace(reason), strings.TrimSpace(by)
	switch {
	case reason == "":
		return Actor{}, &Problem{Status: http.StatusBadRequest, Code: CodeReasonRequired,
			Detail: "say why, for the audit list: \"reason\" in the JSON body, or the header " + ReasonHeader}
	case len(reason) > maxReason || len(by) > maxReason:
		return Actor{}, invalid(fmt.Sprintf("reason and by may have %d bytes each", maxReason))
	}
	return Actor{By: asker(r, by), Reason: reason}, nil
}

// asker is who asks, for the audit list. A name that is only claimed is marked.
func asker(r *http.Request, claimed string) string {
	if user := authenticated(r); user != "" {
		return user
	}
	from := r.RemoteAddr
	if host, _, err := net.SplitHostPort(from); err == nil {
		from = host
	}
	if claimed == "" {
		return "unknown at " + from
	}
	return claimed + " (unverified) at " + from
}

// readAll reads a body, which is bounded. A text that is not UTF-8 is refused: the
// decoder would change it.
func readAll(body io.Reader) ([]byte, error) {
	b, err := io.ReadAll(body)
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large || errors.Is(err, os.ErrDeadlineExceeded):
		return nil, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, invalid("the body is shorter than its header says")
	case err != nil:
		return nil, invalid("the body can't be read: " + err.Error())
	case !utf8.Valid(b):
		return nil, invalid("the body is not UTF-8")
	}
	return b, nil
}

// readBody decodes the JSON body, if there is one, strictly: a misspelt field must
// not do something else than was meant.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := readAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	switch err := d.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return invalid("the body is not the JSON that is expected here: " + strings.TrimPrefix(err.Error(), "json: "))
	case d.More():
		return invalid("there is more than one JSON value in the body")
	}
	// Browsers send this type to another site only after they have asked it.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: CodeMediaType,
			Detail: "send the body as Content-Type: application/json"}
	}
	return nil
}
