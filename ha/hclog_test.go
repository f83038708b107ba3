package ha

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

func TestRaftLogsAsOurs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h := newRaftLogger(log, false)
	h.Info("inner life")
	h.Debug("more of it")
	h.Error("failed to heartbeat to", "peer", "b")
	newRaftLogger(log, true).Warn("heartbeat timeout")
	if out.Len() > 0 {
		t.Errorf("raft's inner life at level info: %s", out.String())
	}
	h.Named("net").With("peer", "b").Warn("lost", "servers", hclog.Fmt("%+v", []int{1}), "n", 2)
	h.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Error}).Println("from a standard logger")
	for _, want := range []string{"level=WARN", `msg="raft: lost"`, "peer=b", "servers=[1]", "n=2", "level=ERROR",
		`"raft: from a standard logger"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}
