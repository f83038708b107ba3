package node

import (
	"context"
	"fmt"
	"time"

	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/ha"
)

// reachInterval is how often a leader looks whether its connectors work.
const reachInterval = time.Second

// watchReach returns nil when one of the contexts ends, and an error that wraps
// ha.ErrStepDown when no connector has been able to work for as long as the
// configuration allows while at least one tried: another node may reach what this
// one does not.
func (m *manager) watchReach(stop, leadership context.Context) error {
	after := m.cfg.Cluster.StepDownAfter
	tick := time.NewTicker(reachInterval)
	defer tick.Stop()
	worked := time.Now()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-leadership.Done():
			return nil
		case <-tick.C:
		}
		blind, why := m.blind()
		if !blind {
			worked = time.Now()
		}
		if after > 0 && len(m.cfg.Cluster.Peers) > 0 && time.Since(worked) > after {
			return fmt.Errorf("no connector could work for %s (%s): %w", after, why, ha.ErrStepDown)
		}
	}
}

// blind reports whether at least one connector wants to work here and none can for
// a reason that may pass, with the reason of one of them.
func (m *manager) blind() (blind bool, why string) {
	for _, c := range m.all() {
		s := c.connector.Status()
		switch {
		case s.State != connector.StateRunning:
		case s.Works():
			return false, ""
		case s.LastError != nil:
			blind, why = true, s.LastError.Code
		}
	}
	return blind, why
}
