package node

import (
	"errors"
	"fmt"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// The limit grows with the connectors, so that many of them do not make the collector
// run all the time, and stays below what the container may have.
func TestMemoryLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "") // restored afterwards
	var got int64
	m := &memoryLimit{set: func(bytes int64) { got = bytes }}
	for n, want := range map[int]int64{0: 80 << 20, 1: 128 << 20, 50: 2480 << 20} {
		if m.connectors(n); got != want {
			t.Errorf("%d connectors: limit %d, want %d", n, got, want)
		}
	}
	m.most = 900 << 20
	if m.connectors(50); got != 900<<20 {
		t.Errorf("in a container of 1000 MiB: %d", got)
	}
	if given := newMemoryLimit(); given.set != nil {
		t.Error("GOMEMLIMIT does not win")
	}
	var none *memoryLimit
	none.connectors(1)
}

// The limit follows the connectors that come and go.
func TestMemoryLimitFollowsTheConnectors(t *testing.T) {
	cfg, err := config.Build(config.YAML("test", fmt.Appendf(nil, "node: {id: n, data_dir: %q}\nadmin: {listen: \"\"}\n",
		t.TempDir())))
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got int64
	limit := &memoryLimit{set: func(bytes int64) { got = bytes }}
	if d.manager, err = newManager(d.manager.assembly, &Compiler{}, limit); err != nil {
		t.Fatal(err)
	}
	if got != memoryOfNode {
		t.Errorf("%d without connectors", got)
	}
	got = -1
	d.manager.instances["x"] = d.manager.refused("x", errors.New("it can't be built"))
	d.manager.reconcile() // the store does not know it
	if got != memoryOfNode {
		t.Errorf("%d after it went", got)
	}
}
