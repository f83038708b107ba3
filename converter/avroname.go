package converter

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// The words of Debezium's schema.name.adjustment.mode and field.name.adjustment.mode.
const (
	NamesAsTheyAre   = "none"
	NamesAvro        = "avro"
	NamesAvroUnicode = "avro_unicode"
)

// AdjustName makes a name of a schema or a field fit for Avro, as the mode has it: what
// Avro does not take becomes "_", or with avro_unicode, which takes no "_" either, "_u"
// and the digits of the UTF-16 unit. dots lets "." stand, as in names of schemas.
func AdjustName(mode, name string, dots bool) string {
	if mode == NamesAsTheyAre || mode == "" {
		return name
	}
	var b strings.Builder
	for i, u := range utf16.Encode([]rune(name)) {
		letter := u >= 'a' && u <= 'z' || u >= 'A' && u <= 'Z'
		digit := u >= '0' && u <= '9'
		switch {
		case letter, i > 0 && (digit || dots && u == '.'), u == '_' && mode == NamesAvro:
			b.WriteByte(byte(u))
		case mode == NamesAvroUnicode && u <= 0xff:
			// Debezium puts two zeros before one digit, too, and none before three.
			fmt.Fprintf(&b, "_u00%x", u)
		case mode == NamesAvroUnicode:
			fmt.Fprintf(&b, "_u%x", u)
		case digit:
			b.WriteByte('_')
			b.WriteByte(byte(u))
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}
