package schema

import (
	"encoding/hex"
	"strings"
)

// NeedsShownDefaults reports whether a column's default can only be had from SHOW CREATE
// TABLE: information_schema cuts those of BINARY and VARBINARY at the first zero byte.
func NeedsShownDefaults(cols []ColumnInfo) bool {
	for i := range cols {
		if cols[i].defaultIsBytes() {
			return true
		}
	}
	return false
}

func (i *ColumnInfo) defaultIsBytes() bool {
	kind := typeByName(strings.ToLower(i.DataType))
	return (kind == Binary || kind == VarBinary) && i.Default != nil && !strings.Contains(i.Extra, "DEFAULT_GENERATED")
}

// SetShownDefaults gives columns of bytes the defaults that SHOW CREATE TABLE shows.
func SetShownDefaults(cols []ColumnInfo, create string) {
	shown := map[string]string{}
	for line := range strings.Lines(create) {
		line = strings.TrimLeft(line, " ")
		if !strings.HasPrefix(line, "`") {
			continue // a key, or the end
		}
		name, n, err := unquoteName(line)
		if err != nil {
			continue
		}
		// A comment, which could hold anything, comes behind.
		if _, def, ok := strings.Cut(line[n:], " DEFAULT "); ok {
			shown[name] = strings.TrimPrefix(def, "_binary ")
		}
	}
	for i := range cols {
		c := &cols[i]
		text, ok := shown[c.Name]
		if !ok || !c.defaultIsBytes() {
			continue
		}
		var value string
		switch {
		case strings.HasPrefix(text, "'"):
			v, _, err := unquote(text)
			if err != nil {
				continue
			}
			value = v
		case strings.HasPrefix(text, "0x"), strings.HasPrefix(text, "x'"):
			digits := text[2:]
			end := strings.IndexFunc(digits, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) })
			if end < 0 {
				end = len(digits)
			}
			raw, err := hex.DecodeString(digits[:end])
			if err != nil {
				continue
			}
			value = string(raw)
		default:
			continue
		}
		sql := "0x" + hex.EncodeToString([]byte(value))
		if quotesDefaults(c.ServerVersion) {
			sql = "x'" + sql[2:] + "'"
		}
		c.Default = &sql
	}
}

// unquoteName reads a name in backquotes; n is where it ends.
func unquoteName(s string) (name string, n int, err error) {
	for i := 1; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '`' {
			i++
			continue
		}
		return strings.ReplaceAll(s[1:i], "``", "`"), i + 1, nil
	}
	return "", 0, errOpen
}
