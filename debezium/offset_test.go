package debezium

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
)

// javaMap is a java.util.HashMap<byte[],byte[]> as Java serialises it.
func javaMap(pairs ...string) []byte {
	out := "\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02F\x00\x0aloadFactorI\x00\x09thresholdxp?@\x00\x00\x00\x00\x00\x0cw\x08\x00\x00\x00\x10"
	out += string(binary.BigEndian.AppendUint32(nil, uint32(len(pairs)/2)))
	array := "ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
	for _, p := range pairs {
		out += array + string(binary.BigEndian.AppendUint32(nil, uint32(len(p)))) + p
		array = "uq\x00~\x00\x02"
	}
	return []byte(out + "x")
}

func TestFindOffset(t *testing.T) {
	data := javaMap(`["shop",{"server":"shop"}]`, `{"ts_sec":1,"file":"binlog.000001","pos":4327,"gtids":"u:1-13","row":10,"event":2}`,
		`["by file",{"server":"x"}]`, `{"file":"binlog.000007","pos":4}`, `["odd \"name\"",{"server":"x"}]`, `?`)
	for name, want := range map[string]Offset{
		"shop": {GTIDs: "u:1-13", File: "binlog.000001", Pos: 4327}, "by file": {File: "binlog.000007", Pos: 4}, `odd "name"`: {},
	} {
		if got, found := FindOffset(data, name); !found || got != want {
			t.Errorf("%s: %+v, %v", name, got, found)
		}
	}
	for _, name := range []string{"sho", "hop", "server", "", "by"} {
		if got, found := FindOffset(data, name); found {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if _, found := FindOffset(nil, "shop"); found {
		t.Error("found in nothing")
	}
}

// What guards a worker's REST interface is not lost, nor is a secret that nobody here
// can read.
func TestNothingThatProtectsIsLost(t *testing.T) {
	worker := func(more string) (*Conversion, error) {
		values := base()
		values["database.password"] = "${secretsManager:db:password}"
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		return Convert(Options{
			Worker:     &File{Name: "worker.properties", Data: []byte("bootstrap.servers=k:1\nlisteners=http://0.0.0.0:8083\n" + more)},
			Connectors: []File{{Name: "c.json", Data: text}},
		})
	}
	_, err := worker("rest.extension.classes=org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension\n")
	if err == nil || !strings.Contains(err.Error(), "rest.extension.classes: is a Java class") || !strings.Contains(err.Error(), "admin.web_config") {
		t.Errorf("rest.extension.classes: %v", err)
	}
	if !strings.Contains(err.Error(), "c.json: database.password: refers to the configuration provider secretsManager") {
		t.Errorf("a provider that is not here: %v", err)
	}
	_, err = worker("rest.extension.classes=x.Y\nbinlog.outbox.admin.web_config=/etc/web.yaml\n")
	if err == nil || strings.Contains(err.Error(), "rest.extension.classes") {
		t.Errorf("with users: %v", err)
	}
}
