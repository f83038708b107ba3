package node

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// What is well is judged here, for the readiness of a node, the exit codes of status and
// doctor, and what doctor says. The page (admin/page/judge.js) and the alerts
// (deploy/prometheus) have the same limits; the alerts look at them with a history.
const (
	// lagLimit is how far behind its source a connector may be.
	lagLimit = time.Minute
	// purgeLimit is how long the source should at least keep what is needed next, unless
	// that is most of what it keeps of anything.
	purgeLimit = 6 * time.Hour
	// statusPollLimit is how old the source's word about itself may be.
	statusPollLimit = 5 * time.Minute
)

const runbooks = "docs/runbooks/BinlogOutbox"

// CheckStatus is the outcome of a check.
type CheckStatus string

// The outcomes.
const (
	CheckOK      CheckStatus = "ok"
	CheckWarning CheckStatus = "warning" // it works, but not well
	CheckFailed  CheckStatus = "failed"  // the connector would not run
	CheckUnknown CheckStatus = "unknown" // it could not be asked
)

// Check is one line of the checklist.
type Check struct {
	// Name is what was asked, in a few words: "MySQL: binlog_format".
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	// Detail is what was found.
	Detail string `json:"detail,omitempty"`
	// Fix is what to do; empty when all is well.
	Fix string `json:"fix,omitempty"`
	// Runbook is the page that says more, if there is one.
	Runbook string `json:"runbook,omitempty"`
}

// Worst is that of a checklist; what could not be asked is a warning.
func Worst(checks []Check) CheckStatus {
	out := CheckOK
	for _, c := range checks {
		switch c.Status {
		case CheckFailed:
			return CheckFailed
		case CheckWarning, CheckUnknown:
			out = CheckWarning
		}
	}
	return out
}

// Judge says whether a connector does what is wanted of it, and why not: CheckFailed waits
// for somebody, CheckWarning tries again by itself, and CheckUnknown has just begun.
func Judge(c *admin.Connector) (s CheckStatus, why string) {
	why = c.State
	if c.Phase != "" {
		why += ", " + c.Phase
	}
	if e := c.LastError; e != nil {
		why += ": " + e.Code + ": " + e.Message
	}
	switch {
	case c.State == string(connector.Failed):
		return CheckFailed, why
	case c.State != string(connector.StateRunning) || c.Phase == connector.Finished:
		return CheckOK, why // it is not wanted, not here, or has done all
	case c.LastError != nil:
		return CheckWarning, why
	case c.Phase != connector.Streaming && c.Phase != connector.SnapshotRows:
		return CheckUnknown, why
	case c.Source == nil || !c.Source.Connected:
		return CheckWarning, why + ": it has lost its source and connects again"
	}
	return CheckOK, why
}

// Well reports whether a node and its connectors are, at one look.
func Well(s admin.Status) bool {
	for i := range s.Connectors {
		if how, _ := Judge(&s.Connectors[i]); how == CheckFailed || how == CheckWarning {
			return false
		}
	}
	return s.Leader != ""
}

// Examine says how a node is that answers. It is to be of this release.
func Examine(s admin.Status) []Check {
	var out []Check
	if own := Version().Version; own != s.Version {
		out = append(out, Check{
			Name: "version", Status: CheckWarning, Detail: fmt.Sprintf("the node runs %s, this program is %s", s.Version, own),
			Fix: "restart the node, if it was to be upgraded",
		})
	}
	if s.Leader == "" {
		return append(out, Check{
			Name: "leader", Status: CheckFailed, Detail: "there is none, so that nothing is published",
			Fix: "bring a majority of the nodes back", Runbook: runbooks + "NoLeader.md",
		})
	}
	return append(out, Check{Name: "leader", Status: CheckOK, Detail: s.Leader})
}

// ExamineCluster says how many voters are reached, which only the leader knows.
func ExamineCluster(c ha.Status) Check {
	voters, reached, known := 0, 0, false
	var away []string
	for _, m := range c.Members {
		if !m.Voter {
			continue
		}
		voters++
		known = known || m.Reachable != nil
		if m.ID == c.NodeID || m.Reachable != nil && *m.Reachable {
			reached++
		} else {
			away = append(away, m.ID)
		}
	}
	out := Check{Name: "quorum", Status: CheckOK, Detail: fmt.Sprintf("%d of %d voters", reached, voters)}
	switch {
	case c.Error != "":
		out.Status, out.Detail, out.Fix, out.Runbook = CheckFailed, c.Error, "see the runbook", runbooks+"NoLeader.md"
	case !known && voters > 1:
		out.Detail = fmt.Sprintf("%d voters; which are reached only the leader knows: ask %s",
			voters, cmp.Or(c.LeaderID, "it when there is one"))
	case reached == voters:
	case reached <= voters/2:
		out.Status, out.Fix, out.Runbook = CheckFailed, "bring "+strings.Join(away, ", ")+" back", runbooks+"NoLeader.md"
	default:
		out.Status, out.Runbook = CheckWarning, runbooks+"QuorumThin.md"
		out.Fix = fmt.Sprintf("bring %s back: without it %d more may be lost",
			strings.Join(away, ", "), reached-voters/2-1)
	}
	return out
}

// ExamineConnector says how a connector is, as a node knows it.
func ExamineConnector(s admin.Status, name string) []Check {
	for i := range s.Connectors {
		if s.Connectors[i].Name == name {
			return connectorChecks(s, &s.Connectors[i])
		}
	}
	return []Check{{
		Name: "running", Status: CheckWarning, Detail: "the node does not have it",
		Fix: "restart the node with this configuration",
	}}
}

func connectorChecks(s admin.Status, c *admin.Connector) []Check {
	out := []Check{stateCheck(s, c)}
	if l := c.LagSeconds; l != nil {
		lag := Check{Name: "lag", Status: CheckOK, Detail: span(*l)}
		if *l > lagLimit.Seconds() {
			lag.Status, lag.Runbook = CheckWarning, runbooks+"LagHigh.md"
			lag.Fix = "look at the last error, and whether Kafka or the source is slow"
		}
		out = append(out, lag)
	}
	if b := c.Backlog; b != nil {
		text := "not known"
		if b.Transactions != nil {
			text = fmt.Sprintf("%d transactions", *b.Transactions)
		} else if b.Bytes != nil {
			text = fmt.Sprintf("%d bytes", *b.Bytes)
		}
		out = append(out, Check{Name: "backlog", Status: CheckOK, Detail: text + " not read yet"})
		out = append(out, poll(b)...)
		out = append(out, headroom(b)...)
	}
	if len(c.UnseenTopics) > 0 {
		out = append(out, Check{
			Name: "open transactions", Status: CheckWarning,
			Detail: fmt.Sprintf("what is left open in a partition without a leader can't be seen in %s, so that rows may "+
				"come twice or be lost when a broker fails", strings.Join(c.UnseenTopics, ", ")),
			Fix: "grant READ on the topics, and use brokers that answer DescribeProducers",
		})
	}
	if n := c.Unpublished.Rows; n > 0 {
		out = append(out, Check{
			Name: "rows not published", Status: CheckWarning, Detail: fmt.Sprintf("%d since the process started", n),
			Fix: "see binlog-outbox rows list " + c.Name, Runbook: runbooks + "RowsUnpublished.md",
		})
	}
	return out
}

func stateCheck(s admin.Status, c *admin.Connector) Check {
	out := Check{Name: "running"}
	out.Status, out.Detail = Judge(c)
	switch {
	case out.Status == CheckFailed:
		out.Fix = "do what the error says, then binlog-outbox connector restart " + c.Name
		out.Runbook = runbooks + "ConnectorFailed.md"
	case out.Status == CheckWarning:
		out.Fix, out.Runbook = "it goes on by itself when that has passed", runbooks+"NotStreaming.md"
	case c.State == string(connector.Unassigned):
		out.Detail = "not here"
		if s.Role == "leader" || s.Leader == "" {
			out.Status = CheckWarning
		} else {
			out.Detail += ": " + s.Leader + " leads, ask it"
		}
	case c.State == string(connector.StatePaused) || c.State == string(connector.StateStopped):
		out.Status, out.Fix = CheckWarning, "binlog-outbox connector resume "+c.Name // somebody may have forgotten it
		if c.Wanted.Reason != "" {
			out.Detail += fmt.Sprintf(" by %s: %s", c.Wanted.By, c.Wanted.Reason)
		}
	}
	return out
}

// poll says whether lag and backlog are of now.
func poll(b *connector.Backlog) []Check {
	old := time.Since(b.At)
	if b.At.IsZero() || old < statusPollLimit {
		return nil
	}
	return []Check{{
		Name: "source's status", Status: CheckWarning,
		Detail:  "it is " + span(old.Seconds()) + " old, and lag and backlog with it",
		Fix:     "look at why the source does not answer",
		Runbook: runbooks + "LagUnknown.md",
	}}
}

// headroom says how long the source keeps what is needed next.
func headroom(b *connector.Backlog) []Check {
	if b.HeadroomSeconds == nil {
		return nil
	}
	out := Check{Name: "binlog headroom", Status: CheckOK, Detail: span(*b.HeadroomSeconds)}
	const fix = "keep binlogs longer on the source (binlog_expire_logs_seconds), and get the connector going"
	switch left := *b.HeadroomSeconds; {
	case left <= 0:
		out.Status, out.Detail = CheckFailed, "none: the source may have purged what is needed next"
	case left < purgeLimit.Seconds() && (b.RetentionSeconds == nil || left < *b.RetentionSeconds/2):
		out.Status = CheckWarning
	}
	if out.Status != CheckOK {
		out.Fix, out.Runbook = fix, runbooks+"BinlogPurgeRisk.md"
	}
	return []Check{out}
}

func span(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}
