package node

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Without GOMEMLIMIT the collector keeps to so much for the node and for each of its
// connectors, as far as live data allows. Queues and batches are bounded well below
// it; it keeps garbage from doubling what a large transaction needs. A limit below the
// live data would make the collector run all the time.
const (
	memoryOfNode      = 80 << 20
	memoryOfConnector = 48 << 20
)

// Without GOGC as much garbage as half of the live data may gather. The live data is
// what the queues hold, so this is some tens of megabytes less in a catch-up for a
// few per cent of its CPU time.
const gcPercent = 50

// memoryLimit keeps the collector's limits as the connectors need them. GOMEMLIMIT and GOGC
// win.
type memoryLimit struct {
	set  func(bytes int64) // nil with GOMEMLIMIT
	most int64             // of the container; 0 without one
}

// newMemoryLimit sets the collector's pace, and asks what the container may have.
func newMemoryLimit() *memoryLimit {
	if _, given := os.LookupEnv("GOGC"); !given {
		debug.SetGCPercent(gcPercent)
	}
	m := &memoryLimit{}
	if _, given := os.LookupEnv("GOMEMLIMIT"); !given {
		m.set = func(bytes int64) { debug.SetMemoryLimit(bytes) }
	}
	if bytes, err := memlimit.FromCgroup(); err == nil { // without a limit there is an error
		m.most = int64(bytes / 10 * 9) // the rest is for stacks and what is not the collector's
	}
	return m
}

// connectors makes the limit that of so many connectors.
func (m *memoryLimit) connectors(n int) {
	if m == nil || m.set == nil {
		return
	}
	limit := memoryOfNode + int64(n)*memoryOfConnector
	if m.most > 0 {
		limit = min(limit, m.most)
	}
	m.set(limit)
}
