package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

// manager has all connectors of this node: those of its file, which stay as they are,
// and those that the replicated store holds, which come, change and go. Every node
// builds them all, so that each can say what is wrong with one here; the leader
// runs them.
type manager struct {
	*assembly

	compiler *Compiler
	memory   *memoryLimit // nil leaves the collector alone

	mu        sync.Mutex
	instances map[string]*instance
	// topics outlive a change of a connector, not its deletion.
	topics map[string]*connector.Topics
	// changed is closed, and replaced, when instances is another set.
	changed chan struct{}
}

// newManager builds the connectors of the file; its error is about one of them.
func newManager(a *assembly, c *Compiler, memory *memoryLimit) (*manager, error) {
	m := &manager{
		assembly:  a,
		compiler:  c,
		memory:    memory,
		instances: map[string]*instance{},
		topics:    map[string]*connector.Topics{},
		changed:   make(chan struct{}),
	}
	for i := range a.cfg.Connectors {
		c := &a.cfg.Connectors[i]
		r, err := m.build(c)
		if err != nil {
			return nil, fmt.Errorf("connector %s: %w", c.Name, unveiled(c, err))
		}
		m.instances[c.Name] = r
	}
	memory.connectors(len(m.instances))
	return m, nil
}

// build makes the instance of a connector; m.mu is held, or nobody else has m.
func (m *manager) build(c *config.Connector) (*instance, error) {
	topics := m.topics[c.Name]
	if topics == nil {
		topics = &connector.Topics{}
		m.topics[c.Name] = topics
	}
	return m.assembly.instance(c, topics, m.fromFile(c.Name) != nil)
}

// fromFile returns the connector that the node's file declares under name.
func (m *manager) fromFile(name string) *config.Connector {
	for i := range m.cfg.Connectors {
		if m.cfg.Connectors[i].Name == name {
			return &m.cfg.Connectors[i]
		}
	}
	return nil
}

// follow keeps the connectors as the store has it until ctx ends.
func (m *manager) follow(ctx context.Context) {
	for {
		changed := m.changes.next()
		m.reconcile()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// reconcile makes the connectors what the file and the store say at this moment.
func (m *manager) reconcile() {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := m.store.Configs() // under the lock: an older answer must not win
	different := false
	for name, have := range m.instances {
		keys, kept := stored[name]
		declared := m.fromFile(name) != nil
		if declared && !kept && have.stored == nil ||
			kept && slices.Equal(keys, have.stored) && declared == have.clash {
			continue
		}
		have.release() // the series of its successor have the same names
		delete(m.instances, name)
		different = true
		switch {
		case declared && !kept:
			m.instances[name] = m.declared(name)
		case !kept:
			delete(m.topics, name)
		}
	}
	for name, have := range m.instances {
		if different && have.conflict {
			have.release()
			delete(m.instances, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if m.instances[name] == nil {
			m.instances[name] = m.fromStore(name, stored[name])
			different = true
		}
	}
	if different {
		m.memory.connectors(len(m.instances))
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// declared builds a connector of the file again, which a clash had put aside.
func (m *manager) declared(name string) *instance {
	c := m.fromFile(name)
	r, err := m.build(c)
	if err != nil {
		return m.refused(name, unveiled(c, err))
	}
	return r
}

func (m *manager) fromStore(name string, stored json.RawMessage) *instance {
	clash := m.fromFile(name) != nil
	c, err := m.compiler.Compile(name, stored)
	if err == nil {
		err = m.conflict(c)
	}
	var r *instance
	switch {
	case clash:
		r = m.refused(name, errClash)
	case err != nil:
		r = m.refused(name, err)
	default:
		if r, err = m.build(c); err != nil {
			r = m.refused(name, unveiled(c, err))
		}
	}
	r.stored, r.clash = stored, clash
	_, r.conflict = errors.AsType[*config.FieldError](err)
	return r
}

// conflict says why c can't run beside the others; m.mu is held.
func (m *manager) conflict(c *config.Connector) error {
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		if o := m.instances[name]; name != c.Name && o.config != nil {
			if err := c.ConflictWith(o.config); err != nil {
				return err
			}
		}
	}
	return nil
}

// errClash is a name in two places, of which neither may win: nodes with another
// file would run another connector on the same position.
var errClash = errors.New("a connector of this name stands in this node's file and was also put over the REST API: " +
	"delete the one that was put, or take it out of the file")

// check says what would become of a connector's keys beside the other connectors,
// and all that is wrong. It builds nothing that stays. blind looks for nothing on this
// node that the keys name.
func (m *manager) check(keys map[string]string, blind bool) ([]debezium.Line, config.Problems) {
	text, err := json.Marshal(keys)
	if err != nil {
		return nil, config.Problems{{Message: err.Error()}}
	}
	var c *config.Connector
	conversion, err := m.compiler.convert(keys["name"], text)
	if err == nil {
		c, err = m.compiler.build(conversion, blind)
	}
	if err == nil {
		m.mu.Lock()
		err = m.conflict(c)
		m.mu.Unlock()
	}
	field, isField := errors.AsType[*config.FieldError](err)
	problems, areProblems := errors.AsType[config.Problems](err)
	switch {
	case areProblems, err == nil:
	case isField:
		problems = config.Problems{{Path: ownSection + field.Path, Message: field.Err.Error()}}
	default:
		problems = config.Problems{{Message: err.Error()}}
	}
	return conversion.Lines, problems
}

// list returns the connectors, those of the file first and then by name, and a
// channel that is closed when they are no longer these.
func (m *manager) list() ([]*instance, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*instance, 0, len(m.instances))
	for i := range m.cfg.Connectors {
		if r := m.instances[m.cfg.Connectors[i].Name]; r != nil {
			out = append(out, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		if m.fromFile(name) == nil {
			out = append(out, m.instances[name])
		}
	}
	return out, m.changed
}

// all returns the connectors as list does.
func (m *manager) all() []*instance {
	out, _ := m.list()
	return out
}

// named returns the connector of a name; nil when there is none.
func (m *manager) named(name string) *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.instances[name]
}

// topicsOf returns the topics of a connector; nil when it has had none here.
func (m *manager) topicsOf(name string) *connector.Topics {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.topics[name]
}
