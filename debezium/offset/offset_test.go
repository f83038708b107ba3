package offset

import (
	"errors"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/debezium/offset/offsettest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Offset{
		`{"ts_sec":1700000000,"file":"b.000001","pos":4327,"gtids":"u:1-13","row":10,"server_id":26161,"event":2}`: {"u:1-13",
			"b.000001", 4327, 2, 10, 1700000000},
		"{\"file\":\"b.000007\",\"pos\":\"4\",\"gtids\":\"u:1-13,\\nv:1\"}": {GTIDs: "u:1-13,v:1", File: "b.000007", Pos: 4},
		`{"file":"b.000007","pos":4,"gtids":null,"snapshot":false,"transaction_id":"file=x,pos=1",` +
			`"incremental_snapshot_collections":"[]","incremental_snapshot_maximum_key":null}`: {File: "b.000007", Pos: 4},
		`{"schema":null,"payload":{"file":"b.000007","pos":4,"snapshot_completed":true}}`: {File: "b.000007", Pos: 4},
	} {
		if got, err := Parse([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"file":"b.1","pos":4,"snapshot":"INITIAL"}`:                                            "snapshot",
		`{"file":"b.1","pos":4,"snapshot":true}`:                                                 "snapshot",
		`{"file":"b.1","pos":4,"incremental_snapshot_collections":"[{\"id\":\"shop.outbox\"}]"}`: "snapshot",
		`{"file":"b.1","pos":-4}`:                                                                "pos is not a number",
		`{"file":"b.1","pos":4,"event":1.5}`:                                                     "event is not a number",
		`{"file":"b.1","pos":4,"lsn":17}`:                                                        "lsn is not known here",
		`{"file":7,"pos":4}`:                                                                     "file is not known here",
		`{"ts_sec":7}`:                                                                           "neither gtids nor a file",
		`[]`:                                                                                     "not a JSON object",
		`null`:                                                                                   "not a JSON object",
		`{"file":"b.1","pos":99999999999999999999}`:                                              "pos is not a number",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrSnapshot) != (want == "snapshot") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestFindInFile(t *testing.T) {
	const shop = `{"file":"binlog.000001","pos":4327}`
	data := offsettest.File(`["shop",{"server":"shop"}]`, shop, `["odd \"name\"",{"server":"x"}]`, "b",
		`{"schema":null,"payload":["old",{"server":"x"}]}`, "c", `["deleted",{"server":"x"}]`, "null",
		`["postgres",{"server":"x","database":"y"}]`, "d")
	entries, err := ReadFile(data)
	if err != nil || len(entries) != 5 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for key, want := range map[Key]string{
		{"shop", "shop"}: shop, {`odd "name"`, "x"}: "b", {"old", "x"}: "c", {"deleted", "x"}: "", {"postgres", "x"}: "",
		{"sho", "shop"}: "", {"shop", "x"}: "", {"shop", ""}: shop,
	} {
		if got := Find(entries, key); string(got) != want {
			t.Errorf("%v: %s", key, got)
		}
	}
	if err := NotFound(entries, Key{"x", "y"}); !strings.Contains(err.Error(),
		`shop (topic.prefix shop), odd "name" (topic.prefix x), old (topic.prefix x)`) {
		t.Error(err)
	}
	if err := NotFound(nil, Key{"x", "y"}); !strings.Contains(err.Error(), "nor of any other") {
		t.Error(err)
	}
	// What was written in part has an offset no more.
	for n := 1; n < len(data); n++ {
		if got, err := ReadFile(data[:n]); err == nil {
			t.Fatalf("the first %d bytes: %d entries", n, len(got))
		}
	}
	for name, other := range map[string][]byte{
		"a properties file": []byte("a=b\nlonger than any header of a stream"),
		"another class":     []byte(strings.Replace(string(data), "HashMap", "HashSet", 1)),
		"another array":     []byte(strings.Replace(string(data), "[B\xac", "[C\xac", 1)),
	} {
		if _, err := ReadFile(other); !errors.Is(err, errNotMap) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := ReadFile(nil); got != nil || err != nil {
		t.Errorf("an empty file: %v, %v", got, err)
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add(offsettest.File(`["shop",{"server":"shop"}]`, `{"file":"b.1","pos":4}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		entries, _ := ReadFile(data)
		for _, e := range entries {
			ParseKey(e.Key)
			_, _ = Parse(e.Value)
		}
	})
}

func TestParseREST(t *testing.T) {
	const answer = `{"offsets":[{"partition":{"server":"shop"},"offset":{"file":"b.1","pos":4}}]}`
	for _, test := range []struct{ body, server, want, err string }{
		{answer, "shop", `{"file":"b.1","pos":4}`, ""},
		{answer, "", `{"file":"b.1","pos":4}`, ""},
		{`{"offsets":[]}`, "shop", "", ""},
		{answer, "other", "", "other partitions"},
		{`<html>`, "shop", "", "not one to GET"},
	} {
		got, err := ParseREST([]byte(test.body), test.server)
		if string(got) != test.want || (err == nil) != (test.err == "") || err != nil &&
			!strings.Contains(err.Error(), test.err) {
			t.Errorf("%s of %q: %s, %v", test.body, test.server, got, err)
		}
	}
}

func TestRuns(t *testing.T) {
	for _, test := range []struct{ key, value, want string }{
		{"status-connector-shop", `{"state":"STOPPED"}`, ""},
		{"status-connector-shop", `{"state":"RUNNING"}`, "it is RUNNING"},
		{"status-connector-shop", `{"state":"PAUSED"}`, "it is PAUSED"},
		{"status-connector-shop", `{"state":"UNASSIGNED"}`, "it is UNASSIGNED"}, // Connect starts it again
		{"status-connector-shop", `?`, "can't be read"},
		{"status-connector-shop", "", ""}, // it was deleted
		{"status-connector-shop-2", `{"state":"RUNNING"}`, ""},
		{"status-task-shop-0", `{"state":"RUNNING"}`, "its task is RUNNING"},
		{"status-task-shop-0", `{"state":"UNASSIGNED"}`, ""},
		{"status-task-shop-2-0", `{"state":"RUNNING"}`, ""}, // of connector shop-2
		{"status-topic-shop", `{"state":"RUNNING"}`, ""},
	} {
		var value []byte
		if test.value != "" {
			value = []byte(test.value)
		}
		if got := Runs([]byte(test.key), value, "shop"); (got == "") != (test.want == "") ||
			!strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q, want %q", test.key, test.value, got, test.want)
		}
	}
}
