package restapi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Step is one request. The steps are made in order, since each finds what those
// before it have left.
type Step struct {
	// Name is unique.
	Name         string
	Method, Path string
	// Body is sent as JSON when it is not empty. {host}, {port}, {user} and {password}
	// in it are the database's, {dir} is a folder that the worker can write to.
	Body string
	// ContentType is application/json when it is empty.
	ContentType string
	// Until is a text that the answer must hold; the request is made again until it
	// does. Not is one that it must not hold.
	Until, Not string
	// Publish says that outbox rows are inserted before the request.
	Publish bool
	// Names says that the keys of the answer's object are names, of which any may be
	// there.
	Names bool
}

const mysqlClass = "io.debezium.connector.mysql.MySqlConnector"

// config returns the configuration of a connector that works, with changes: pairs of
// a key and its value; "-" as a value leaves the key out.
func config(prefix string, changes ...string) string {
	c := map[string]string{
		"connector.class": mysqlClass, "tasks.max": "1",
		"database.hostname": "{host}", "database.port": "{port}", "database.user": "{user}",
		"database.password":  "{password}",
		"database.server.id": "7100001", "topic.prefix": prefix,
		"database.include.list": "restapi", "table.include.list": "restapi.outbox",
		"snapshot.mode": "no_data", "snapshot.locking.mode": "none",
		"schema.history.internal":               "io.debezium.storage.file.history.FileSchemaHistory",
		"schema.history.internal.file.filename": "{dir}/" + prefix + ".history",
		"include.schema.changes":                "false",
		"transforms":                            "outbox",
		"transforms.outbox.type":                "io.debezium.transforms.outbox.EventRouter",
	}
	for i := 0; i < len(changes); i += 2 {
		if c[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(c, changes[i])
		}
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // a map of strings
	}
	return string(b)
}

func create(name, config, more string) string {
	return fmt.Sprintf(`{"name": %q, "config": %s%s}`, name, config, more)
}

// Steps are the requests.
func Steps() []Step {
	var all []Step
	for _, part := range [][]Step{workerSteps(), validateSteps(), createSteps(), readSteps(), configSteps(),
		restartSteps(), stateSteps(), offsetSteps(), deleteSteps(), loggerSteps()} {
		all = append(all, part...)
	}
	return all
}

func workerSteps() []Step {
	return []Step{
		{Name: "worker", Method: "GET", Path: "/"},
		{Name: "health", Method: "GET", Path: "/health"},
		{Name: "no connectors", Method: "GET", Path: "/connectors"},
		{Name: "no connectors, expanded", Method: "GET", Path: "/connectors?expand=status&expand=info"},
		{Name: "plugins", Method: "GET", Path: "/connector-plugins"},
		{Name: "all plugins", Method: "GET", Path: "/connector-plugins?connectorsOnly=false"},
		{Name: "keys of a plugin", Method: "GET", Path: "/connector-plugins/" + mysqlClass + "/config"},
		{Name: "keys of an unknown plugin", Method: "GET", Path: "/connector-plugins/nosuch/config"},
		{Name: "unknown path", Method: "GET", Path: "/nosuch"},
		{Name: "unknown path of a connector", Method: "GET", Path: "/connectors/orders/nosuch"},
		{Name: "wrong method on the list", Method: "PUT", Path: "/connectors", Body: "{}"},
		{Name: "wrong method on an action", Method: "GET", Path: "/connectors/orders/pause"},
		{Name: "wrong media type", Method: "POST", Path: "/connectors", Body: "name=orders",
			ContentType: "application/x-www-form-urlencoded"},
	}
}

func validateSteps() []Step {
	path := "/connector-plugins/" + mysqlClass + "/config/validate"
	return []Step{
		{Name: "validate", Method: "PUT", Path: path, Body: config("orders", "name", "orders")},
		{Name: "validate by alias", Method: "PUT", Path: "/connector-plugins/MySqlConnector/config/validate",
			Body: config("orders", "name", "orders")},
		{Name: "validate, keys missing", Method: "PUT", Path: path, Body: fmt.Sprintf(`{"connector.class": %q}`, mysqlClass)},
		{Name: "validate, bad values", Method: "PUT", Path: path, Body: config("orders", "name", "orders", "database.port",
			"many", "snapshot.mode", "sometimes")},
		{Name: "validate, no class", Method: "PUT", Path: path, Body: config("orders", "name", "orders", "connector.class",
			"-")},
		{Name: "validate, another class", Method: "PUT", Path: path, Body: config("orders", "connector.class",
			"org.apache.kafka.connect.file.FileStreamSourceConnector")},
		{Name: "validate, unknown plugin", Method: "PUT", Path: "/connector-plugins/nosuch/config/validate",
			Body: `{"connector.class": "nosuch"}`},
		{Name: "validate, not JSON", Method: "PUT", Path: path, Body: "{"},
		{Name: "validate, no body", Method: "PUT", Path: path},
	}
}

func createSteps() []Step {
	return []Step{
		{Name: "create", Method: "POST", Path: "/connectors", Body: create("orders", config("orders"), "")},
		{Name: "create again", Method: "POST", Path: "/connectors", Body: create("orders", config("orders"), "")},
		{Name: "create with two names", Method: "POST", Path: "/connectors",
			Body: create("orders", config("orders", "name", "others"), "")},
		{Name: "create without a name", Method: "POST", Path: "/connectors", Body: `{"config": ` + config("orders") + `}`},
		{Name: "create without a config", Method: "POST", Path: "/connectors", Body: `{"name": "none"}`},
		{Name: "create with an unknown field", Method: "POST", Path: "/connectors",
			Body: create("more", config("more"), `, "more": 1`)},
		{Name: "create with a bad config", Method: "POST", Path: "/connectors",
			Body: create("bad", config("bad", "database.hostname", "-", "topic.prefix", "-"), "")},
		{Name: "create without a class", Method: "POST", Path: "/connectors",
			Body: create("bad", config("bad", "connector.class", "-"), "")},
		{Name: "create of an unknown class", Method: "POST", Path: "/connectors",
			Body: create("bad", config("bad", "connector.class", "com.example.Nosuch"), "")},
		{Name: "create with a bad initial state", Method: "POST", Path: "/connectors",
			Body: create("bad", config("bad"), `, "initial_state": "SLEEPING"`)},
		{Name: "create paused", Method: "POST", Path: "/connectors", Body: create("paused",
			config("paused", "database.server.id", "7100002"), `, "initial_state": "PAUSED"`)},
		{Name: "status of one created paused", Method: "GET", Path: "/connectors/paused/status", Until: `"PAUSED"`},
		{Name: "create, not JSON", Method: "POST", Path: "/connectors", Body: "{"},
		{Name: "create, a list", Method: "POST", Path: "/connectors", Body: "[]"},
		{Name: "create, no body", Method: "POST", Path: "/connectors"},
	}
}

const tasksRun = `"tasks":[{"id":0,"state":"RUNNING"`

func readSteps() []Step {
	return []Step{
		{Name: "status", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun},
		{Name: "connector", Method: "GET", Path: "/connectors/orders"},
		{Name: "config", Method: "GET", Path: "/connectors/orders/config"},
		{Name: "tasks", Method: "GET", Path: "/connectors/orders/tasks"},
		{Name: "tasks config", Method: "GET", Path: "/connectors/orders/tasks-config"},
		{Name: "task status", Method: "GET", Path: "/connectors/orders/tasks/0/status"},
		{Name: "status of no such task", Method: "GET", Path: "/connectors/orders/tasks/7/status"},
		{Name: "status of a task that is no number", Method: "GET", Path: "/connectors/orders/tasks/x/status"},
		{Name: "no topics", Method: "GET", Path: "/connectors/paused/topics"},
		{Name: "topics", Method: "GET", Path: "/connectors/orders/topics", Publish: true, Until: "outbox.event.order"},
		{Name: "list", Method: "GET", Path: "/connectors"},
		{Name: "list with status", Method: "GET", Path: "/connectors?expand=status"},
		{Name: "list with info", Method: "GET", Path: "/connectors?expand=info"},
		{Name: "list with both", Method: "GET", Path: "/connectors?expand=status&expand=info"},
		{Name: "list with something else", Method: "GET", Path: "/connectors?expand=nosuch"},
		{Name: "unknown connector", Method: "GET", Path: "/connectors/nosuch"},
		{Name: "config of an unknown connector", Method: "GET", Path: "/connectors/nosuch/config"},
		{Name: "status of an unknown connector", Method: "GET", Path: "/connectors/nosuch/status"},
		{Name: "tasks of an unknown connector", Method: "GET", Path: "/connectors/nosuch/tasks"},
		{Name: "task status of an unknown connector", Method: "GET", Path: "/connectors/nosuch/tasks/0/status"},
		{Name: "topics of an unknown connector", Method: "GET", Path: "/connectors/nosuch/topics"},
		{Name: "offsets of an unknown connector", Method: "GET", Path: "/connectors/nosuch/offsets"},
	}
}

func configSteps() []Step {
	return []Step{
		{Name: "put config", Method: "PUT", Path: "/connectors/orders/config",
			Body: config("orders", "tasks.max", "1", "poll.interval.ms", "100")},
		{Name: "put config of a new connector", Method: "PUT", Path: "/connectors/second/config",
			Body: config("second", "database.server.id", "7100003")},
		{Name: "put config with another name", Method: "PUT", Path: "/connectors/orders/config",
			Body: config("orders", "name", "others")},
		{Name: "put bad config", Method: "PUT", Path: "/connectors/orders/config",
			Body: config("orders", "database.hostname", "-")},
		{Name: "put config, not JSON", Method: "PUT", Path: "/connectors/orders/config", Body: "{"},
		{Name: "put config, no body", Method: "PUT", Path: "/connectors/orders/config"},
		{Name: "put config with a number", Method: "PUT", Path: "/connectors/orders/config",
			Body: strings.Replace(config("orders"), `"tasks.max":"1"`, `"tasks.max":1`, 1)},
		{Name: "patch config", Method: "PATCH", Path: "/connectors/orders/config",
			Body: `{"poll.interval.ms": "200", "tasks.max": null}`},
		{Name: "config after the patch", Method: "GET", Path: "/connectors/orders/config"},
		{Name: "patch config badly", Method: "PATCH", Path: "/connectors/orders/config", Body: `{"database.hostname": null}`},
		{Name: "patch config of an unknown connector", Method: "PATCH", Path: "/connectors/nosuch/config",
			Body: `{"tasks.max": "1"}`},
		{Name: "status after the patch", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun,
			Not: "RESTARTING"},
	}
}

func restartSteps() []Step {
	return []Step{
		{Name: "restart", Method: "POST", Path: "/connectors/orders/restart"},
		{Name: "status after the restart", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun,
			Not: "RESTARTING"},
		{Name: "restart with tasks", Method: "POST", Path: "/connectors/orders/restart?includeTasks=true"},
		{Name: "status after the restart with tasks", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun,
			Not: "RESTARTING"},
		{Name: "restart what failed", Method: "POST", Path: "/connectors/orders/restart?onlyFailed=true"},
		{Name: "restart what failed, with tasks", Method: "POST",
			Path: "/connectors/orders/restart?includeTasks=true&onlyFailed=true"},
		{Name: "restart of an unknown connector", Method: "POST", Path: "/connectors/nosuch/restart"},
		{Name: "restart with tasks of an unknown connector", Method: "POST",
			Path: "/connectors/nosuch/restart?includeTasks=true"},
		{Name: "restart a task", Method: "POST", Path: "/connectors/orders/tasks/0/restart"},
		{Name: "restart no such task", Method: "POST", Path: "/connectors/orders/tasks/7/restart"},
		{Name: "status after restarts", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun, Not: "RESTARTING"},
	}
}

func stateSteps() []Step {
	return []Step{
		{Name: "pause", Method: "PUT", Path: "/connectors/orders/pause"},
		{Name: "status while paused", Method: "GET", Path: "/connectors/orders/status", Until: `"state":"PAUSED"`,
			Not: "RUNNING"},
		{Name: "pause again", Method: "PUT", Path: "/connectors/orders/pause"},
		{Name: "resume", Method: "PUT", Path: "/connectors/orders/resume"},
		{Name: "status after resuming", Method: "GET", Path: "/connectors/orders/status", Until: tasksRun, Not: "PAUSED"},
		{Name: "pause an unknown connector", Method: "PUT", Path: "/connectors/nosuch/pause"},
		{Name: "resume an unknown connector", Method: "PUT", Path: "/connectors/nosuch/resume"},
		{Name: "stop an unknown connector", Method: "PUT", Path: "/connectors/nosuch/stop"},
		{Name: "reset topics", Method: "PUT", Path: "/connectors/orders/topics/reset"},
		{Name: "topics after the reset", Method: "GET", Path: "/connectors/orders/topics", Not: "outbox.event.order"},
		{Name: "reset topics of an unknown connector", Method: "PUT", Path: "/connectors/nosuch/topics/reset"},
	}
}

func offsetSteps() []Step {
	const offset = `{"offsets": [{"partition": {"server": "orders"}, "offset": {"file": "binlog.000001", "pos": 4, "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-99", "ts_sec": 1700000000}}]}`
	return []Step{
		{Name: "offsets", Method: "GET", Path: "/connectors/orders/offsets", Until: `"file"`},
		{Name: "set offsets of a running connector", Method: "PATCH", Path: "/connectors/orders/offsets", Body: offset},
		{Name: "reset offsets of a running connector", Method: "DELETE", Path: "/connectors/orders/offsets"},
		{Name: "stop", Method: "PUT", Path: "/connectors/orders/stop"},
		{Name: "status while stopped", Method: "GET", Path: "/connectors/orders/status", Until: `"STOPPED"`, Not: "RUNNING"},
		{Name: "stopped connector", Method: "GET", Path: "/connectors/orders", Until: `"tasks":[]`},
		{Name: "tasks while stopped", Method: "GET", Path: "/connectors/orders/tasks"},
		{Name: "task status while stopped", Method: "GET", Path: "/connectors/orders/tasks/0/status"},
		{Name: "restart a task while stopped", Method: "POST", Path: "/connectors/orders/tasks/0/restart"},
		{Name: "offsets while stopped", Method: "GET", Path: "/connectors/orders/offsets", Until: `"file"`},
		{Name: "set offsets, none given", Method: "PATCH", Path: "/connectors/orders/offsets", Body: `{"offsets": []}`},
		{Name: "set offsets, not JSON", Method: "PATCH", Path: "/connectors/orders/offsets", Body: "{"},
		{Name: "set offsets, empty object", Method: "PATCH", Path: "/connectors/orders/offsets", Body: "{}"},
		{Name: "set offsets of an unknown connector", Method: "PATCH", Path: "/connectors/nosuch/offsets", Body: offset},
		{Name: "reset offsets of an unknown connector", Method: "DELETE", Path: "/connectors/nosuch/offsets"},
		{Name: "set offsets", Method: "PATCH", Path: "/connectors/orders/offsets", Body: offset},
		{Name: "offsets that were set", Method: "GET", Path: "/connectors/orders/offsets", Until: ":1-99"},
		{Name: "set offsets of another partition", Method: "PATCH", Path: "/connectors/orders/offsets",
			Body: `{"offsets": [{"partition": {"server": "others"}, "offset": {"file": "binlog.000001", "pos": 4}}]}`},
		{Name: "set offsets without a partition", Method: "PATCH", Path: "/connectors/orders/offsets",
			Body: `{"offsets": [{"offset": {"file": "binlog.000001", "pos": 4}}]}`},
		{Name: "set offsets without a file", Method: "PATCH", Path: "/connectors/orders/offsets",
			Body: `{"offsets": [{"partition": {"server": "orders"}, "offset": {"pos": 4}}]}`},
		{Name: "set offsets to null", Method: "PATCH", Path: "/connectors/orders/offsets",
			Body: `{"offsets": [{"partition": {"server": "orders"}, "offset": null}]}`},
		{Name: "set offsets without gtids", Method: "PATCH", Path: "/connectors/orders/offsets",
			Body: `{"offsets": [{"partition": {"server": "orders"}, "offset": {"file": "binlog.000001", "pos": 4}}]}`},
		{Name: "reset offsets", Method: "DELETE", Path: "/connectors/orders/offsets"},
		{Name: "offsets after the reset", Method: "GET", Path: "/connectors/orders/offsets", Until: `"offsets":[]`},
	}
}

func deleteSteps() []Step {
	return []Step{
		{Name: "delete", Method: "DELETE", Path: "/connectors/orders"},
		{Name: "connector after deletion", Method: "GET", Path: "/connectors/orders"},
		{Name: "delete again", Method: "DELETE", Path: "/connectors/orders"},
		{Name: "list after deletion", Method: "GET", Path: "/connectors", Not: `"orders"`},
	}
}

func loggerSteps() []Step {
	return []Step{
		{Name: "loggers", Method: "GET", Path: "/admin/loggers", Names: true},
		{Name: "root logger", Method: "GET", Path: "/admin/loggers/root"},
		{Name: "unknown logger", Method: "GET", Path: "/admin/loggers/no.such.logger"},
		{Name: "set a logger", Method: "PUT", Path: "/admin/loggers/canal", Body: `{"level": "debug"}`},
		{Name: "loggers after setting one", Method: "GET", Path: "/admin/loggers", Names: true},
		{Name: "set the root logger", Method: "PUT", Path: "/admin/loggers/root", Body: `{"level": "INFO"}`},
		{Name: "set a logger to no level", Method: "PUT", Path: "/admin/loggers/root", Body: `{"level": "loud"}`},
		{Name: "set a logger, no level given", Method: "PUT", Path: "/admin/loggers/root", Body: `{}`},
		{Name: "set a logger everywhere", Method: "PUT", Path: "/admin/loggers/canal?scope=cluster",
			Body: `{"level": "INFO"}`},
	}
}
