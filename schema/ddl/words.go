package ddl

import "strings"

// knows reports whether a word may be shown in a reason: those of clauses, which are no
// names of anybody's.
func (s Source) knows(w string) bool { return shown[strings.ToUpper(w)] }

var shown = set(
	"SYSTEM VERSIONING PERIOD ROW START END SELECT PARTITION BY SYSTEM_TIME WITHOUT WITH SEQUENCE LIKE UNION " +
		"CHECK CONSTRAINT REFERENCES DEFAULT GENERATED AS ENGINE ADD DROP CHANGE MODIFY RENAME ALTER CONVERT " +
		"EXCHANGE VALUES TABLE",
)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}
