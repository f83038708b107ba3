package e2e

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/test/e2e/harness"
	"github.com/binlog-outbox/binlog-outbox/test/e2e/history"
)

// dry asks what setting the position would do.
func (s *stage) dry(body string) (change struct {
	Repeated *uint64 `json:"repeated_transactions"`
	Skipped  *uint64 `json:"skipped_transactions"`
	After    struct {
		File string
		Pos  uint64
	}
	Notes []string
}) {
	s.t.Helper()
	answer := s.call("PUT", "/v1/connectors/"+s.connector()+"/offset", `{"reason":"test","dry_run":true,`+body+`}`, 200)
	if err := json.Unmarshal(answer, &change); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%s: %s", body, answer)
	return change
}

// stopped publishes rows of so many transactions and stops the connector; at is a
// moment after the first, of the server's clock, which their times are of.
func (s *stage) stopped(first, then int) (at time.Time) {
	s.t.Helper()
	s.start()
	s.more(first)
	at = s.clockBeyond(s.clock())
	s.clockBeyond(at)
	s.more(then)
	_, rows := s.written()
	if err := s.tail.Wait(s.t.Context(), rows, silence); err != nil {
		s.t.Fatal(err)
	}
	s.call("PUT", "/v1/connectors/"+s.connector()+"/stop", `{"reason":"test"}`, 202)
	s.await("it has stopped", silence, func(c harness.ConnectorStatus) bool { return c.State == "stopped" })
	return at
}

// clock is the time on the server.
func (s *stage) clock() time.Time {
	s.t.Helper()
	text, err := s.play.server.Value(s.t.Context(), "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)")
	if err != nil {
		s.t.Fatal(err)
	}
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return time.UnixMicro(micros)
}

// clockBeyond waits until the server's clock is in the second after the next one, since
// a binlog may know whole seconds only.
func (s *stage) clockBeyond(t time.Time) time.Time {
	s.t.Helper()
	for {
		if now := s.clock(); now.Unix() > t.Unix()+1 {
			return now
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestOffsetPlacesGTID: the beginning, the end and a time of the binlog as
// positions, and how many transactions lie between.
func TestOffsetPlacesGTID(t *testing.T) {
	s := newStage(t, play{server: mysqlGTID(t), delivery: "exactly_once"})
	at := s.stopped(40, 25)
	for body, want := range map[string]uint64{
		`"at":"now"`: 0, `"at":"earliest"`: 65, fmt.Sprintf(`"at":%q`, at.Format(time.RFC3339Nano)): 25,
		`"at":"2100-01-01T00:00:00Z"`: 0,
	} {
		if c := s.dry(body); c.Repeated == nil || c.Skipped == nil || *c.Repeated != want || *c.Skipped != 0 {
			t.Errorf("%s: want %d again", body, want)
		}
	}
	s.chooseByCommand("--at", at.Format(time.RFC3339Nano))
	s.more(10)
	h := s.finish(history.AtLeastOnce(history.Bound{Rewinds: 1, Rows: 25 * batchRows}))
	if c := h.Counts(); c.Repeated < 25 || c.Repeated > 25*batchRows {
		t.Errorf("%d rows came twice, want those of 25 transactions", c.Repeated)
	}
}

// TestOffsetPlacesFile: the same by file and offset, where nothing can be counted.
func TestOffsetPlacesFile(t *testing.T) {
	s := newStage(t, play{server: mysqlFile(t), positions: "file", delivery: "exactly_once"})
	at := s.stopped(40, 25)
	for _, body := range []string{`"at":"earliest"`, fmt.Sprintf(`"at":%q`, at.Format(time.RFC3339Nano))} {
		if c := s.dry(body); c.Repeated != nil || len(c.Notes) == 0 || c.After.File == "" || c.After.Pos == 0 {
			t.Errorf("%s: %+v", body, c)
		}
	}
	turn := s.dry(fmt.Sprintf(`"at":%q`, at.Format(time.RFC3339Nano))).After
	s.chooseByCommand("--file", turn.File, "--pos", fmt.Sprint(turn.Pos))
	s.more(10) // they come after those that come again
	h := s.finish(history.AtLeastOnce(history.Bound{Rewinds: 1, Rows: 25 * batchRows}))
	if c := h.Counts(); c.Repeated < 25 || c.Repeated > 25*batchRows {
		t.Errorf("%d rows came twice, want those of 25 transactions", c.Repeated)
	}
}
