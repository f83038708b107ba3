package debezium

import (
	"encoding/json"
	"strings"
	"testing"
)

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
			Worker: &File{Name: "worker.properties", Data: []byte("bootstrap.servers=k:1\nlisteners=http://0.0.0.0:8083\n" +
				more)},
			Connectors: []File{{Name: "c.json", Data: text}},
		})
	}
	_, err := worker("rest.extension.classes=org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension\n")
	if err == nil || !strings.Contains(err.Error(), "rest.extension.classes: is a Java class") ||
		!strings.Contains(err.Error(), "admin.web_config") {
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
