package node

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/docs"
)

// TestEveryErrorHasAdvice: the page shows what runbooks say of an error's code where
// it stands in the first cell of a table's row, or before the colon of a list's item.
func TestEveryErrorHasAdvice(t *testing.T) {
	said := map[string]bool{}
	place := regexp.MustCompile("(?m)^(?:\\| ([^|]+) \\||\\d+\\. ((?:`\\w+`(?:, )?)+): )")
	for _, name := range []string{"BinlogOutboxConnectorFailed", "BinlogOutboxNotStreaming"} {
		text, err := docs.Runbooks.ReadFile("runbooks/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range place.FindAllStringSubmatch(string(text), -1) {
			for _, code := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[1]+m[2], -1) {
				said[code[1]] = true
			}
		}
	}
	want := []string{"row_refused", "position_regression", "drain_timeout", "superseded", "timeout", "other"}
	for k := canal.Disconnected; k <= canal.Demoted; k++ {
		want = append(want, k.String())
	}
	for file, code := range map[string]string{
		"../kafka/errors.go": `Code = "(\w+)"`, "../connector/unpublished.go": `ErrCode\(\) string { return "(\w+)"`,
		"source.go":    `(?:ErrCode\(\) string { return |tableError{)"(\w+)"`,
		"positions.go": `ErrCode\(\) string { return "(\w+)"`, "../connector/refused.go": `CodeConfig = "(\w+)"`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(code).FindAllStringSubmatch(string(text), -1)
		if found == nil {
			t.Errorf("%s has no codes", file)
		}
		for _, m := range found {
			want = append(want, m[1])
		}
	}
	for _, code := range want {
		if !said[strings.TrimSpace(code)] {
			t.Errorf("no runbook says what to do about %s", code)
		}
	}
}
