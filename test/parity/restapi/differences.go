package restapi

// Difference is what our answer to a step has otherwise, on purpose.
type Difference struct {
	// Found is what Compare says.
	Found []string
	// Why is the reason, for the page.
	Why string
}

// Differences are those that are meant, by step.
func Differences() map[string]Difference {
	out := map[string]Difference{
		"validate, no class":       {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"validate, unknown plugin": {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"create without a name": {[]string{"status 400, not 500"},
			"Connect fails over its own answer; the keys that are wrong are told"},
		"create without a config":      {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"create with an unknown field": {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"create with a bad config": {[]string{"status 400, not 500"},
			"Connect fails over its own answer to Debezium; the keys that are wrong are told"},
		"create with a bad initial state": {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"put bad config": {[]string{"status 400, not 500"},
			"Connect fails over its own answer to Debezium; the keys that are wrong are told"},
		"patch config badly": {[]string{"status 400, not 500"},
			"Connect fails over its own answer to Debezium; the keys that are wrong are told"},
		"create, a list": {[]string{"status 400, not 500"}, "what a client has done wrong is 400"},
		"restart a task while stopped": {[]string{"status 404, not 409"},
			"a stopped connector has no task, and trying again does not help"},
		"set offsets of another partition": {[]string{"status 400, not 200", "has $.error_code"},
			"a partition that no connector reads is a mistake; Connect stores it"},
		"set offsets without a partition": {[]string{"status 400, not 200", "has $.error_code"},
			"a partition that no connector reads is a mistake; Connect stores it"},
		"set offsets without a file": {[]string{"status 400, not 200", "has $.error_code"},
			"Connect stores it, and Debezium fails when it starts"},
		"offsets that were set": {
			[]string{"lacks $.offsets[].offset.file", "lacks $.offsets[].offset.pos", "lacks $.offsets[].offset.ts_sec"},
			"with gtids the file, the offset and the time are known when the next transaction has been read",
		},
	}
	for _, step := range []string{"validate, not JSON", "validate, no body", "create, not JSON", "create, no body",
		"put config, not JSON", "put config, no body", "set offsets, not JSON"} {
		out[step] = Difference{[]string{"status 400, not 500"}, "what a client has done wrong is 400"}
	}
	for _, step := range []string{"offsets", "offsets while stopped"} {
		out[step] = Difference{
			[]string{"lacks $.offsets[].offset.event", "lacks $.offsets[].offset.row", "lacks $.offsets[].offset.server_id"},
			"a position is always the end of a transaction, never inside of one",
		}
	}
	for _, step := range []string{"restart what failed", "restart what failed, with tasks"} {
		out[step] = Difference{[]string{"lacks $.tasks[].state RESTARTING", "has $.tasks[].state RUNNING"},
			"nothing had failed; Connect still had the restart before to do"}
	}
	state := []string{"tasks[].id", "tasks[].state PAUSED", "tasks[].version", "tasks[].worker_id", "tasks[]{}"}
	name := []string{"tasks[].connector", "tasks[].task", "tasks[]{}"}
	const why = "a connector that is created paused has its paused task at once"
	out["status of one created paused"] = Difference{has("$.", state), why}
	out["list with status"] = Difference{has("$.paused.status.", state), why}
	out["list with info"] = Difference{has("$.paused.info.", name), why}
	out["list with both"] = Difference{append(has("$.paused.info.", name), has("$.paused.status.", state)...), why}
	return out
}

func has(prefix string, paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = "has " + prefix + p
	}
	return out
}
