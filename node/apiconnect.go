package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/connector"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/ha"
	"github.com/binlog-outbox/binlog-outbox/kafka"
)

// connectVersion is the release of Kafka Connect whose REST API is served. Clients
// decide by it what they may ask for.
const connectVersion = "4.3.1"

// connectAPI gives the Connect REST API what it needs of the node.
type connectAPI struct {
	*api
	cluster clusterID
	// addr is where the admin server listens; empty without one.
	addr func() string
}

// Worker implements admin.Connect.
func (n *connectAPI) Worker(ctx context.Context) admin.ConnectWorker {
	return admin.ConnectWorker{Version: connectVersion, Commit: Version().Revision, ClusterID: n.cluster.get(ctx, n.api)}
}

// Version implements admin.Connect.
func (n *connectAPI) Version() string { return Version().Version }

// Healthy implements admin.Connect.
func (n *connectAPI) Healthy() error {
	switch s := n.store.Status(); {
	case s.Error != "":
		return errors.New(s.Error)
	case !s.Ready:
		return errors.New("no leader is known")
	}
	return nil
}

// clusterID remembers the id of the Kafka cluster, which does not change.
type clusterID struct {
	mu sync.Mutex
	id string
}

// get asks the brokers of the first connector that can be built; "" is an id that
// is not known.
func (c *clusterID) get(ctx context.Context, a *api) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != "" {
		return c.id
	}
	for _, r := range a.manager.all() {
		if r.config == nil {
			continue
		}
		kc, err := kafkaConfig(a.cfg, r.config)
		if err == nil {
			kc.Dialer = a.dial
			c.id, err = kafka.ClusterID(ctx, kc)
		}
		if err != nil {
			a.log.Debug("asking Kafka for its cluster id", "error", err)
		}
		break
	}
	return c.id
}

// workerID names this node as Connect names a worker.
func (n *connectAPI) workerID() string {
	if _, port, err := net.SplitHostPort(n.addr()); err == nil {
		return n.cfg.Node.ID + ":" + port
	}
	return n.cfg.Node.ID
}

// Connectors implements admin.Connect.
func (n *connectAPI) Connectors() []admin.ConnectConnector {
	var out []admin.ConnectConnector
	for _, r := range n.manager.all() {
		c := admin.ConnectConnector{Connector: n.status(r), Node: n.workerID(), Version: Version().Version}
		keys := n.keysOf(r)
		c.Class, c.Server, c.Config = keys["connector.class"], keys["topic.prefix"], keys
		if c.Server == "" {
			c.Server = r.name
		}
		if t := n.manager.topicsOf(r.name); t != nil {
			c.Topics = t.List()
		}
		out = append(out, c)
	}
	return out
}

// keysOf are the keys of a connector, with secrets masked.
func (n *connectAPI) keysOf(r *instance) map[string]string {
	if r.stored == nil {
		for i := range n.cfg.Connectors {
			if n.cfg.Connectors[i].Name == r.name {
				return debezium.Describe(n.cfg.ConnectorSettings(i))
			}
		}
	}
	keys := storedKeys(r.stored)
	for key, value := range keys {
		keys[key] = debezium.Shown(key, value)
	}
	return keys
}

// storedKeys reads what PutConnector has stored.
func storedKeys(stored json.RawMessage) map[string]string {
	keys := map[string]string{}
	if err := json.Unmarshal(stored, &keys); err != nil {
		return map[string]string{} // the compiler says what is wrong
	}
	return keys
}

// stored is what the store holds of a connector.
func (n *connectAPI) stored(name string) (json.RawMessage, bool) {
	config, ok := n.store.Configs()[name]
	return config, ok
}

// inFile refuses to change what the node's file declares.
func inFile(name string) error {
	return &admin.Problem{Status: http.StatusConflict, Code: admin.CodeRejected,
		Detail: fmt.Sprintf("connector %s is declared in the file of node(s) and can't be changed over the REST API: "+
			"change the file, or take it out there", name)}
}

// PutConnector implements admin.Connect.
func (n *connectAPI) PutConnector(ctx context.Context, put admin.ConnectPut, by admin.Actor) error {
	if n.manager.fromFile(put.Name) != nil {
		return inFile(put.Name)
	}
	before, known := n.stored(put.Name)
	if err := unmask(put.Config, storedKeys(before)); err != nil {
		return err
	}
	keys, err := json.Marshal(put.Config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	if put.State != "" && !known {
		if err := n.store.SetRunState(ctx, put.Name, put.State, by.Reason, by.By); err != nil {
			return problem(err)
		}
	}
	if known && bytes.Equal(keys, before) {
		return nil
	}
	if err := n.store.PutConfig(ctx, put.Name, keys, by.Reason, by.By); err != nil {
		return problem(err)
	}
	n.manager.reconcile() // what was answered must be seen by the next request
	return nil
}

// unmask puts back the secrets of keys that came as they had been shown.
func unmask(keys, before map[string]string) error {
	for key, value := range keys {
		if value != config.Mask || !debezium.IsSecretKey(key) {
			continue
		}
		old, ok := before[key]
		if !ok {
			return &admin.Problem{Status: http.StatusBadRequest, Code: admin.CodeInvalid,
				Detail: fmt.Sprintf("%s is %s, which is how a secret is shown: give the secret itself, or a reference such as "+
					"${file:PATH:KEY}", key, config.Mask)}
		}
		keys[key] = old
	}
	return nil
}

// endPatience is how long a connector that is deleted may take to publish and save
// what it has read; the request of another node must be answered within its time.
const endPatience = 4 * time.Second

// DeleteConnector implements admin.Connect. The connector is stopped first, so that
// its position is saved when another one of its name goes on from there.
func (n *connectAPI) DeleteConnector(ctx context.Context, name string, by admin.Actor) error {
	if _, ok := n.stored(name); !ok {
		return inFile(name)
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	r := n.manager.named(name)
	if r != nil && r.connector.Status().State == connector.StateRunning {
		if err := n.store.SetRunState(ctx, name, ha.Stopped, "before its deletion: "+by.Reason, by.By); err != nil {
			return problem(err)
		}
		n.waitForEnd(ctx, r)
	}
	if err := n.store.DeleteConnector(ctx, name, by.Reason, by.By); err != nil {
		return problem(err)
	}
	n.manager.reconcile()
	return nil
}

func (n *connectAPI) waitForEnd(ctx context.Context, r *instance) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	patience := time.After(endPatience)
	for r.connector.Status().State == connector.StateRunning {
		select {
		case <-tick.C:
		case <-patience:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ResetTopics implements admin.Connect.
func (n *connectAPI) ResetTopics(name string) error {
	if t := n.manager.topicsOf(name); t != nil {
		t.Reset()
	}
	return nil
}

// requiredKeys are those without which no connector works.
var requiredKeys = []string{"name", "connector.class", "topic.prefix", "database.hostname", "database.user",
	"table.include.list", "transforms"}

// Keys implements admin.Connect.
func (n *connectAPI) Keys() []admin.ConnectKey {
	var out []admin.ConnectKey
	for _, key := range debezium.KnownKeys() {
		out = append(out, connectKey(key))
	}
	return out
}

func connectKey(name string) admin.ConnectKey {
	return admin.ConnectKey{Name: name, Secret: debezium.IsSecretKey(name), Required: slices.Contains(requiredKeys, name)}
}

// Validate implements admin.Connect.
func (n *connectAPI) Validate(given map[string]string, blind bool) []admin.ConnectKey {
	found := map[string]*admin.ConnectKey{}
	key := func(name string) *admin.ConnectKey {
		if found[name] == nil {
			k := connectKey(name)
			found[name] = &k
		}
		return found[name]
	}
	for name, value := range given {
		shown := debezium.Shown(name, value)
		key(name).Value = &shown
	}
	lines, problems := n.manager.check(given, blind)
	for _, l := range lines {
		if _, ok := given[l.Key]; ok {
			key(l.Key).Text = strings.TrimSpace(l.Outcome.String() + " " + l.Setting + ": " + l.Text)
		}
	}
	for _, p := range problems {
		name := p.Origin.Key
		if name == "" {
			name = debezium.KeyOf(strings.TrimPrefix(p.Path, ownSection))
		}
		key(name).Errors = append(key(name).Errors, p.Message)
	}
	var out []admin.ConnectKey
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out
}
