package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal/canaltest"
)

// The forms into which kcctl and kafka-ui read the answers, with the fields that
// they use.
type (
	clientState struct {
		State    string `json:"state"`
		WorkerID string `json:"worker_id"`
		Trace    string `json:"trace"`
	}
	clientStatus struct {
		Name      string        `json:"name"`
		Type      string        `json:"type"`
		Connector clientState   `json:"connector"`
		Tasks     []clientState `json:"tasks"`
	}
	clientInfo struct {
		Name   string            `json:"name"`
		Type   string            `json:"type"`
		Config map[string]string `json:"config"`
		Tasks  []struct {
			Connector string `json:"connector"`
			Task      int    `json:"task"`
		} `json:"tasks"`
	}
	clientValidation struct {
		Name    string   `json:"name"`
		Count   int      `json:"error_count"`
		Groups  []string `json:"groups"`
		Configs []struct {
			Definition struct {
				Name, Type, Importance, Width string
				Required                      bool
			}
			Value struct {
				Name   string
				Errors []string
			}
		}
	}
)

// strictly decodes the answer to a request, which must be 2xx.
func strictly[T any](t *testing.T, n *aNode, method, path, body string) T {
	t.Helper()
	var out T
	code, text := n.call(t, method, path, body, nil)
	if code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return out
}

// kcctl 1.0: the calls of its commands, in their order.
func TestConnectAPIForKcctl(t *testing.T) {
	source := canaltest.StartOutbox(t, 10)
	n := startNode(t, "n1", t.TempDir(), "")
	eventually(t, "the node leads", n.leads)
	// kcctl info; every other command asks for the version too, and reads what stands
	// before its first two dots.
	info := strictly[struct {
		Version   string  `json:"version"`
		Commit    string  `json:"commit"`
		ClusterID *string `json:"kafka_cluster_id"`
	}](t, n, "GET", "/", "")
	parts := strings.Split(info.Version, ".")
	major, err := strconv.Atoi(parts[0])
	if err != nil || major < 4 || info.ClusterID == nil {
		t.Fatalf("kcctl would refuse its commands at %+v", info)
	}
	if _, err := strconv.Atoi(parts[1]); err != nil {
		t.Fatal(err)
	}
	// kcctl apply -f orders.json: validates with the last part of the class, looks
	// whether it is there, then POSTs the file or PUTs its config.
	file := fmt.Sprintf(`{"name": "orders", "config": %s}`, keys("orders"))
	v := strictly[clientValidation](t, n, "PUT", "/connector-plugins/MySqlConnector/config/validate",
		string(keys("orders")))
	if v.Count != 0 || len(v.Configs) == 0 {
		t.Errorf("validation: %+v", v)
	}
	if names := strictly[[]string](t, n, "GET", "/connectors/", ""); len(names) != 0 {
		t.Errorf("connectors: %v", names)
	}
	strictly[clientStatus](t, n, "POST", "/connectors/", file)
	strictly[clientStatus](t, n, "PUT", "/connectors/orders/config", string(keys("orders", "database.port",
		strconv.Itoa(source.Port()), "database.user", canaltest.User, "database.password", canaltest.Password)))
	// What is wrong is shown by key.
	v = strictly[clientValidation](t, n, "PUT", "/connector-plugins/MySqlConnector/config/validate",
		string(keys("orders", "snapshot.mode", "sometimes")))
	if i := slices.IndexFunc(v.Configs, func(c struct {
		Definition struct {
			Name, Type, Importance, Width string
			Required                      bool
		}
		Value struct {
			Name   string
			Errors []string
		}
	}) bool {
		return c.Value.Name == "snapshot.mode" && len(c.Value.Errors) == 1
	}); i < 0 || v.Count != 1 {
		t.Errorf("validation: %+v", v)
	}
	// kcctl get connectors
	eventually(t, "kcctl shows it running", func() bool {
		all := strictly[map[string]struct{ Status clientStatus }](t, n, "GET", "/connectors?expand=status", "")
		s := all["orders"].Status
		return s.Type == "source" && s.Connector.State == "RUNNING" && s.Connector.WorkerID != "" && len(s.Tasks) == 1 &&
			s.Tasks[0].State == "RUNNING"
	})
	// kcctl describe connector
	if c := strictly[clientInfo](t, n, "GET", "/connectors/orders", ""); c.Config["connector.class"] == "" ||
		c.Type != "source" {
		t.Errorf("connector: %+v", c)
	}
	strictly[clientStatus](t, n, "GET", "/connectors/orders/status", "")
	strictly[map[string]string](t, n, "GET", "/connectors/orders/config", "")
	strictly[[]struct {
		ID     struct{ Task int }
		Config map[string]string
	}](t, n, "GET", "/connectors/orders/tasks", "")
	if topics := strictly[map[string]struct{ Topics []string }](t, n, "GET", "/connectors/orders/topics",
		""); topics["orders"].Topics == nil {
		t.Errorf("topics: %v", topics)
	}
	// kcctl patch connector: reads, changes, writes all of it.
	config := strictly[map[string]string](t, n, "GET", "/connectors/orders/config", "")
	config["poll.interval.ms"] = "100"
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	strictly[clientStatus](t, n, "PUT", "/connectors/orders/config", string(body))
	// kcctl restart connector, with and without tasks
	n.must(t, 204, "POST", "/connectors/orders/restart", "")
	if s := strictly[clientStatus](t, n, "POST", "/connectors/orders/restart?includeTasks=true&onlyFailed=false",
		""); s.Tasks[0].State != "RESTARTING" {
		t.Errorf("restart: %+v", s)
	}
	n.must(t, 204, "POST", "/connectors/orders/tasks/0/restart", "")
	// kcctl pause, resume, stop; get, patch and delete offsets
	for action, code := range map[string]int{"pause": 202, "resume": 202} {
		n.must(t, code, "PUT", "/connectors/orders/"+action, "")
	}
	n.must(t, 204, "PUT", "/connectors/orders/stop", "")
	strictly[struct {
		Offsets []struct{ Partition, Offset map[string]any }
	}](t, n, "GET", "/connectors/orders/offsets", "")
	set := `{"offsets": [{"partition": {"server": "orders"}, "offset": {"file": "binlog.000001", "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9", "ts_sec": 1700000000, "event": 2, "row": 1}}]}`
	if m := strictly[struct{ Message string }](t, n, "PATCH", "/connectors/orders/offsets",
		set); !strings.Contains(m.Message, "altered successfully") {
		t.Errorf("patch offsets: %q", m.Message)
	}
	o := strictly[struct {
		Offsets []struct{ Partition, Offset map[string]any }
	}](t, n, "GET", "/connectors/orders/offsets", "")
	if len(o.Offsets) != 1 || o.Offsets[0].Partition["server"] != "orders" ||
		o.Offsets[0].Offset["gtids"] != "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10" {
		t.Errorf("offsets: %+v", o)
	}
	if m := strictly[struct{ Message string }](t, n, "DELETE", "/connectors/orders/offsets",
		""); !strings.Contains(m.Message, "reset successfully") {
		t.Errorf("delete offsets: %q", m.Message)
	}
	// kcctl get plugins, describe plugin, get and patch loggers
	if p := strictly[[]struct{ Class, Type, Version string }](t, n, "GET", "/connector-plugins?connectorsOnly=false",
		""); len(p) == 0 || p[0].Class == "" || p[0].Type != "source" || p[0].Version == "" {
		t.Errorf("plugins: %+v", p)
	}
	strictly[[]struct {
		Name     string
		Required bool
	}](t, n, "GET", "/connector-plugins/MySqlConnector/config", "")
	strictly[map[string]struct{ Level string }](t, n, "GET", "/admin/loggers", "")
	if l := strictly[[]string](t, n, "PUT", "/admin/loggers/kafka", `{"level": "DEBUG"}`); !slices.Equal(l,
		[]string{"kafka"}) {
		t.Errorf("loggers: %v", l)
	}
	strictly[struct{ Level string }](t, n, "GET", "/admin/loggers/kafka", "")
	n.must(t, 204, "DELETE", "/connectors/orders", "")
}

// Kafka UI (kafbat): what its pages ask for, and the words that its enumerations know.
func TestConnectAPIForKafkaUI(t *testing.T) {
	n := startNode(t, "n1", t.TempDir(), fileConnector)
	eventually(t, "the node leads", n.leads)
	strictly[struct{ Version, Commit string }](t, n, "GET", "/", "")
	// Creating looks for the name first, and sends what the form has: any JSON values.
	type expanded = map[string]struct {
		Info   clientInfo
		Status clientStatus
	}
	if all := strictly[expanded](t, n, "GET", "/connectors?expand=info&expand=status", ""); len(all) != 1 {
		t.Errorf("connectors: %+v", all)
	}
	form := strings.Replace(string(keys("orders")), `"database.port":"1"`, `"database.port":1`, 1)
	strictly[clientInfo](t, n, "POST", "/connectors", fmt.Sprintf(`{"name": "orders", "config": %s}`, form))
	connectorStates := []string{"RUNNING", "FAILED", "PAUSED", "UNASSIGNED", "RESTARTING", "STOPPED"}
	taskStates := []string{"RUNNING", "FAILED", "PAUSED", "RESTARTING", "UNASSIGNED"}
	check := func() {
		t.Helper()
		for name, c := range strictly[expanded](t, n, "GET", "/connectors?expand=info&expand=status", "") {
			if c.Info.Config["connector.class"] == "" || c.Info.Type != "source" || c.Info.Name != name ||
				!slices.Contains(connectorStates, c.Status.Connector.State) {
				t.Errorf("connector: %+v", c)
			}
			for _, task := range c.Status.Tasks {
				if !slices.Contains(taskStates, task.State) {
					t.Errorf("task: %+v", task)
				}
			}
			topics := strictly[map[string]struct{ Topics []string }](t, n, "GET", "/connectors/"+name+"/topics", "")
			if topics[name].Topics == nil {
				t.Errorf("topics: %v", topics)
			}
		}
	}
	check()
	// The page of a connector, with its tasks.
	strictly[clientInfo](t, n, "GET", "/connectors/orders", "")
	strictly[clientStatus](t, n, "GET", "/connectors/orders/status", "")
	for _, task := range strictly[[]struct{ ID struct{ Task int } }](t, n, "GET", "/connectors/orders/tasks", "") {
		strictly[clientState](t, n, "GET", fmt.Sprintf("/connectors/orders/tasks/%d/status", task.ID.Task), "")
		n.must(t, 204, "POST", fmt.Sprintf("/connectors/orders/tasks/%d/restart", task.ID.Task), "")
	}
	// The form of the configuration: it is masked, and saved as it is shown.
	shown := strictly[map[string]any](t, n, "GET", "/connectors/orders/config", "")
	body, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	strictly[clientInfo](t, n, "PUT", "/connectors/orders/config", string(body))
	n.must(t, 204, "POST", "/connectors/orders/restart?includeTasks=false&onlyFailed=false", "")
	for _, c := range []struct {
		action, state string
		code          int
	}{{"pause", "PAUSED", 202}, {"resume", "RUNNING", 202}, {"stop", "STOPPED", 204}} {
		n.must(t, c.code, "PUT", "/connectors/orders/"+c.action, "")
		eventually(t, c.state, func() bool {
			return strictly[clientStatus](t, n, "GET", "/connectors/orders/status", "").Connector.State == c.state
		})
		check()
	}
	n.must(t, 200, "DELETE", "/connectors/orders/offsets", "")
	v := strictly[clientValidation](t, n, "PUT",
		"/connector-plugins/io.debezium.connector.mysql.MySqlConnector/config/validate", string(keys("orders")))
	for _, c := range v.Configs {
		d := c.Definition
		if !slices.Contains([]string{"BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING"},
			d.Type) ||
			!slices.Contains([]string{"LOW", "MEDIUM", "HIGH"}, d.Importance) ||
			!slices.Contains([]string{"SHORT", "MEDIUM", "LONG", "NONE"}, d.Width) {
			t.Errorf("definition: %+v", d)
		}
	}
	strictly[[]struct{ Class string }](t, n, "GET", "/connector-plugins", "")
	n.must(t, 204, "DELETE", "/connectors/orders", "")
}
