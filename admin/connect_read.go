package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/ha"
)

// The states as Connect writes them.
const (
	connectRunning    = "RUNNING"
	connectPaused     = "PAUSED"
	connectStopped    = "STOPPED"
	connectFailed     = "FAILED"
	connectUnassigned = "UNASSIGNED"
	connectRestarting = "RESTARTING"
)

// connectType is that of every connector here.
const connectType = "source"

type connectState struct {
	State   string `json:"state"`
	Worker  string `json:"worker_id"`
	Trace   string `json:"trace,omitempty"`
	Version string `json:"version"`
}

type taskState struct {
	ID int `json:"id"`
	connectState
}

type connectStatus struct {
	Name      string       `json:"name"`
	Connector connectState `json:"connector"`
	Tasks     []taskState  `json:"tasks"`
	Type      string       `json:"type"`
}

type taskName struct {
	Connector string `json:"connector"`
	Task      int    `json:"task"`
}

type connectInfo struct {
	Name   string            `json:"name"`
	Config map[string]string `json:"config"`
	Tasks  []taskName        `json:"tasks"`
	Type   string            `json:"type"`
}

// status is a connector with its one task. What can't be built has no task, as in
// Connect; what fails at work is a task that failed.
func (c *ConnectConnector) status() connectStatus {
	s := connectStatus{Name: c.Name, Tasks: []taskState{}, Type: connectType,
		Connector: connectState{State: connectRunning, Worker: c.Node, Version: c.Version}}
	task := s.Connector
	switch c.State {
	case "running":
	case string(ha.Paused):
		s.Connector.State, task.State = connectPaused, connectPaused
	case string(ha.Stopped):
		s.Connector.State = connectStopped
		return s
	case "failed":
		if c.Config == nil || c.LastError != nil && c.LastError.Code == codeConfig {
			s.Connector.State, s.Connector.Trace = connectFailed, c.trace()
			return s
		}
		task.State, task.Trace = connectFailed, c.trace()
	default:
		s.Connector.State, task.State = connectUnassigned, connectUnassigned
		if c.Wanted.State == ha.Stopped {
			return s
		}
	}
	s.Tasks = append(s.Tasks, taskState{0, task})
	return s
}

// codeConfig is the code of LastError of a connector that can't be built.
const codeConfig = "config_invalid"

func (c *ConnectConnector) trace() string {
	if c.LastError == nil {
		return ""
	}
	return c.LastError.Code + ": " + c.LastError.Message
}

func (c *ConnectConnector) info() connectInfo {
	i := connectInfo{Name: c.Name, Config: c.Config, Tasks: []taskName{}, Type: connectType}
	for _, t := range c.status().Tasks {
		i.Tasks = append(i.Tasks, taskName{c.Name, t.ID})
	}
	return i
}

// find returns the connector that the path names.
func (a *ConnectAPI) find(name string) (*ConnectConnector, error) {
	all := a.connect.Connectors()
	if i := slices.IndexFunc(all, func(c ConnectConnector) bool { return c.Name == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, unknownConnector(name)
}

// named finds the connector of a request.
func (a *ConnectAPI) named(r *http.Request) (*ConnectConnector, error) {
	return a.find(r.PathValue("name"))
}

// clusterTimeout bounds how long GET / waits for Kafka to tell its id.
const clusterTimeout = 3 * time.Second

func (a *ConnectAPI) worker(r *http.Request) (httpAnswer, error) {
	ctx, cancel := context.WithTimeout(r.Context(), clusterTimeout)
	defer cancel()
	return ok(a.connect.Worker(ctx))
}

// health tells in Connect's words whether this node takes part in the cluster, which
// a follower does too. What the connectors do is not asked, as in Connect.
func (a *ConnectAPI) health(*http.Request) (httpAnswer, error) {
	type health struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if err := a.connect.Healthy(); err != nil {
		return httpAnswer{status: http.StatusServiceUnavailable, body: health{"starting", err.Error()}}, nil //nolint:nilerr // it is the answer
	}
	return ok(health{"healthy", "Worker has completed startup and is ready to handle requests."})
}

func (a *ConnectAPI) list(r *http.Request) (httpAnswer, error) {
	all := a.connect.Connectors()
	expand, expanded := r.URL.Query()["expand"]
	if !expanded {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		return ok(names)
	}
	out := map[string]map[string]any{}
	for i := range all {
		one := map[string]any{}
		for _, what := range expand {
			switch what {
			case "status":
				one["status"] = all[i].status()
			case "info":
				one["info"] = all[i].info()
			}
		}
		out[all[i].Name] = one
	}
	return ok(out)
}

func (a *ConnectAPI) get(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return ok(c.info())
}

func (a *ConnectAPI) getConfig(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return ok(c.Config)
}

func (a *ConnectAPI) getStatus(r *http.Request) (httpAnswer, error) {
	c, err := a.find(r.PathValue("name"))
	if err != nil {
		return httpAnswer{}, noStatus(r.PathValue("name"))
	}
	return ok(c.status())
}

// noStatus is in other words than unknownConnector, as in Connect.
func noStatus(name string) error {
	return refused(http.StatusNotFound, "No status found for connector %s", name)
}

// taskConfig is the configuration of a connector's task: that of the connector.
func (c *ConnectConnector) taskConfig() map[string]string {
	out := map[string]string{"task.class": c.Class + "Task"}
	for key, value := range c.Config {
		out[key] = value
	}
	return out
}

func (a *ConnectAPI) tasks(r *http.Request) (httpAnswer, error) {
	c, err := a.named(r)
	if err != nil {
		return httpAnswer{}, err
	}
	type task struct {
		ID     taskName          `json:"id"`
		Config map[string]string `json:"config"`
	}
	out := []task{}
	for _, t := range c.info().Tasks {
		out = append(out, task{t, c.taskConfig()})
	}
	return ok(out)
}

// task returns the task that the path names. A path with something else than a
// number names nothing.
func (a *ConnectAPI) task(r *http.Request) (*taskState, error) {
	n, err := strconv.Atoi(r.PathValue("task"))
	if err != nil {
		return nil, refused(http.StatusNotFound, "HTTP 404 Not Found")
	}
	if c, err := a.named(r); err == nil {
		for _, t := range c.status().Tasks {
			if t.ID == n {
				return &t, nil
			}
		}
	}
	return nil, refused(http.StatusNotFound, "No status found for task %s-%d", r.PathValue("name"), n)
}

func (a *ConnectAPI) taskStatus(r *http.Request) (httpAnswer, error) {
	t, err := a.task(r)
	if err != nil {
		return httpAnswer{}, err
	}
	return ok(t)
}

func (a *ConnectAPI) topics(r *http.Request) (httpAnswer, error) {
	type topics struct {
		Topics []string `json:"topics"`
	}
	name := r.PathValue("name")
	found := topics{[]string{}}
	// Connect knows topics of connectors that it does not know.
	if c, err := a.find(name); err == nil {
		found.Topics = append(found.Topics, c.Topics...)
	}
	return ok(map[string]topics{name: found})
}

// isPlugin says whether name, a class or the end of one, is that of a plugin.
func isPlugin(name string) bool {
	short := func(s string) string { return strings.TrimSuffix(s, "Connector") }
	for _, class := range connectClasses {
		if class == name || short(class[strings.LastIndexByte(class, '.')+1:]) == short(name) {
			return true
		}
	}
	return false
}

// connectClasses are the connectors that are replaced here.
var connectClasses = []string{"io.debezium.connector.mysql.MySqlConnector",
	"io.debezium.connector.mariadb.MariaDbConnector"}
