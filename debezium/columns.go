package debezium

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// columnOptions are the keys that change columns, in the order in which Debezium asks
// them: the first that matches a column counts.
var columnOptions = []struct {
	key    *regexp.Regexp
	action config.ColumnAction
}{
	{regexp.MustCompile(`^column\.truncate\.to\.(\d+)\.chars$`), config.ColumnTruncate},
	{regexp.MustCompile(`^column\.mask\.with\.(\d+)\.chars$`), config.ColumnMask},
	{regexp.MustCompile(`^column\.mask\.hash\.([^.]+)\.with\.salt\.(.+)$`), config.ColumnHash},
	{regexp.MustCompile(`^column\.mask\.hash\.v2\.([^.]+)\.with\.salt\.(.+)$`), config.ColumnHashV2},
}

// columnRules turns the options over that leave columns out, mask and cut them.
func (c *connector) columnRules() {
	for _, kind := range []string{"include", "exclude"} {
		if l, ok := c.get("column." + kind + ".list"); ok && strings.TrimSpace(l.value) != "" {
			if patterns, ok := c.columnPatterns(l); ok {
				c.take(l, "columns."+kind, patterns, "")
			}
		}
	}
	number := 0
	for _, option := range columnOptions {
		for _, key := range c.withPrefix("column.") {
			m := option.key.FindStringSubmatch(key)
			if m == nil {
				continue
			}
			l, _ := c.get(key)
			if patterns, ok := c.columnPatterns(l); ok && c.columnChange(l, fmt.Sprintf("columns.changes[%d]", number),
				option.action, m[1:]) {
				c.set(l, fmt.Sprintf("columns.changes[%d].columns", number), patterns)
				number++
			}
		}
	}
}

// columnPatterns splits a list of columns; without regard to what other keys say it must
// hold regular expressions.
func (c *connector) columnPatterns(l located) ([]string, bool) {
	if !c.literal(l) {
		return nil, false
	}
	patterns := splitPatterns(l.value)
	if _, err := config.ColumnMatcher(patterns); err != nil {
		c.refuse(l, err.Error())
		return nil, false
	}
	if len(patterns) == 0 {
		c.same(l, "no column is named")
		return nil, false
	}
	return patterns, true
}

// columnChange takes what the key itself says.
func (c *connector) columnChange(l located, path string, action config.ColumnAction, args []string) bool {
	if len(args) == 2 {
		algorithm := strings.ToUpper(args[0])
		if algorithm == "SHA" || algorithm == "SHA1" { // Java's other names of it
			algorithm = "SHA-1"
		}
		if !slices.Contains(config.HashAlgorithms(), algorithm) {
			c.refuse(l, args[0]+" is not one of "+strings.Join(config.HashAlgorithms(), ", "))
			return false
		}
		c.set(l, path+".algorithm", algorithm)
		c.set(l, path+".salt", args[1])
	} else {
		c.set(l, path+".length", args[0])
	}
	c.take(l, path+".action", string(action), "")
	return true
}
