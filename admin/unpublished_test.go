package admin

import (
	"strings"
	"testing"
)

// A row is skipped or dead-lettered by a decision that names it, says what to do, and why.
func TestUnpublishedRowsRoutes(t *testing.T) {
	c := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, c)
	const path = "/v1/connectors/orders/unpublished-rows"
	good := `{"transaction":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","row":2,"action":"skip","reason":"poison","by":"ann"}`
	a := ask("POST", path, good)
	if want := (RowRequest{"3e11fa47-71ca-11e1-9e33-c80aa9429562:23", 2, "skip"}); a.code != 201 || c.decided != want ||
		c.last.Reason != "poison" || !strings.HasPrefix(c.last.By, "ann") {
		t.Errorf("%d %s: %+v by %+v", a.code, a.body, c.decided, c.last)
	}
	if a := ask("GET", path, ""); a.code != 200 || !strings.Contains(a.body, `"row": 2`) {
		t.Errorf("%d %s", a.code, a.body)
	}
	for body, code := range map[string]string{
		strings.Replace(good, `"reason":"poison",`, "", 1):  CodeReasonRequired,
		strings.Replace(good, `"row":2,`, "", 1):            CodeInvalid,
		strings.Replace(good, `"action":"skip",`, "", 1):    CodeInvalid,
		strings.Replace(good, `"row"`, `"line"`, 1):         CodeInvalid,
		strings.Replace(good, `"transaction"`, `"gtid"`, 1): CodeInvalid,
	} {
		asked := len(c.asked)
		if a := ask("POST", path, body); a.problem(t) != code || len(c.asked) != asked {
			t.Errorf("%s: %d %s", body, a.code, a.body)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if a := ask(method, "/v1/connectors/none/unpublished-rows",
			map[string]string{"POST": good}[method]); a.problem(t) != CodeConnectorNotFound {
			t.Errorf("%s: %d %s", method, a.code, a.body)
		}
	}
}
