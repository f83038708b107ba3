package admin

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/admin/admintest"
)

var theContract = sync.OnceValues(func() (*admintest.Contract, error) { return admintest.Load("../docs/openapi.yaml") })

// TestContractIsWhole: every route of the server is in the document and the other
// way round, and each has been answered well in this test.
func TestContractIsWhole(t *testing.T) {
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	ask := serveControl(t, &fakeNode{}, &fakeControl{})
	for path, item := range c.Doc.Paths.Map() {
		if path == "/v1/events" {
			continue // has no end, and tests of its own
		}
		for method, operation := range item.Operations() {
			body := ""
			if operation.RequestBody != nil {
				body = map[string]string{
					"setOffset":    `{"reason":"r","at":"now"}`,
					"importOffset": `{"reason":"r","debezium":{"offset":{"file":"b.1","pos":4}}}`,
					"addMember":    `{"reason":"r","id":"n","address":"n:1"}`, "setLogger": `{"reason":"r","level":"info"}`,
					"decideRow": `{"reason":"r","transaction":"b.000001:400","row":1,"action":"skip"}`,
				}[operation.OperationID]
				if body == "" {
					body = why
				}
			}
			full := strings.NewReplacer("{name}", "orders", "{id}", "n4").Replace(path)
			if a := ask(method, full, body, ReasonHeader, "r"); a.code >= 300 {
				t.Errorf("%s %s: %d %s", method, full, a.code, a.body)
			}
		}
	}
	registered := 0
	s := &Server{control: &fakeControl{}}
	count := func(_ Role, pattern string, _ http.HandlerFunc) {
		registered++
		method, path, _ := strings.Cut(pattern, " ")
		if item := c.Doc.Paths.Value(path); item == nil || item.GetOperation(method) == nil {
			t.Errorf("%s is not in the document", pattern)
		}
	}
	s.controlRoutes(count)
	eventRoutes(s.control, count)
	s.operationRoutes(count)
	documented := 0
	for _, item := range c.Doc.Paths.Map() {
		documented += len(item.Operations())
	}
	if documented != registered+2 { // and status and events
		t.Errorf("%d operations in the document, %d routes", documented, registered+2)
	}
}
