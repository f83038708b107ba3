package schema

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// defaultTo reads COLUMN_DEFAULT into c. MySQL gives the bare value and marks
// expressions in EXTRA (since 8.0; before, CURRENT_TIMESTAMP is the only one);
// MariaDB since 10.2.7 gives SQL: 'text', a number, NULL or an expression.
func (i *ColumnInfo) defaultTo(c *Column) {
	if i.Default == nil {
		return
	}
	text := *i.Default
	if quotesDefaults(i.ServerVersion) {
		switch {
		case text == "NULL":
		case strings.HasPrefix(text, "'"):
			if s, n, err := unquote(text); err == nil && n == len(text) {
				c.Default = &s
				return
			}
			c.DefaultExpr = text
		case strings.HasPrefix(text, "x'"): // MySQL's way to show the bytes of a BINARY
			text = "0x" + strings.Trim(text[1:], "'")
			c.Default = &text
		case isNumber(text), strings.HasPrefix(text, "b'"): // BIT reads alike on both servers
			c.Default = &text
		default:
			c.DefaultExpr = text
		}
		return
	}
	temporal := c.Type == Timestamp || c.Type == DateTime
	if strings.Contains(i.Extra, "DEFAULT_GENERATED") ||
		temporal && strings.HasPrefix(strings.ToUpper(text), "CURRENT_TIMESTAMP") {
		c.DefaultExpr = text
		return
	}
	if (c.Type == Enum || c.Type == Set) && c.Charset == "binary" { // in hexadecimal, as bytes are
		if digits, ok := strings.CutPrefix(text, "0x"); ok {
			if raw, err := hex.DecodeString(digits); err == nil {
				text = string(raw)
			}
		}
	}
	c.Default = &text
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// quotesDefaults reports whether the server is a MariaDB from 10.2.7 on.
func quotesDefaults(version string) bool {
	if !strings.Contains(strings.ToLower(version), "mariadb") {
		return false
	}
	var v [3]int
	for i, p := range strings.SplitN(strings.TrimPrefix(version, "5.5.5-"), ".", 3) {
		end := strings.IndexFunc(p, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(p)
		}
		v[i], _ = strconv.Atoi(p[:end])
	}
	return v[0] > 10 || v[0] == 10 && (v[1] > 2 || v[1] == 2 && v[2] >= 7)
}
