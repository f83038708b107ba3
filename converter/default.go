package converter

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

// defaultValue gives the schema the column's DEFAULT, as Debezium reads it from the
// DDL. Expressions, and defaults that cannot be read, are none.
func (b *builder) defaultValue() {
	if b.col.Default == nil {
		if isNow(b.col.DefaultExpr) && (b.col.Type == schema.DateTime || b.col.Type == schema.Timestamp) {
			b.temporalDefault(epoch)
		}
		return
	}
	text := *b.col.Default
	switch b.col.Type {
	case schema.TinyInt, schema.SmallInt, schema.MediumInt, schema.Int, schema.BigInt:
		b.integerDefault(strings.TrimSpace(text))
	case schema.Year:
		b.yearDefault(strings.TrimSpace(text))
	case schema.Float, schema.Double:
		b.floatDefault(strings.TrimSpace(text))
	case schema.Decimal:
		b.decimalDefault(strings.TrimSpace(text))
	case schema.Bit:
		b.bitDefault(text)
	case schema.Date, schema.Time, schema.DateTime, schema.Timestamp:
		b.temporalDefault(strings.TrimSpace(text))
	case schema.Binary, schema.VarBinary, schema.TinyBlob, schema.Blob, schema.MediumBlob, schema.LongBlob:
		b.binaryDefault(text)
	case schema.Enum, schema.Set:
		b.out.Schema.Default = ddlEscapes.Replace(text)
	case schema.JSON, schema.Geometry, schema.Vector:
		// Only expressions.
	default:
		if b.modes.Quirks {
			text = strings.ReplaceAll(ddlEscapes.Replace(text), "'", "''")
		}
		b.out.Schema.Default = text
	}
}

// try sets the default to what the column's own conversion makes of raw.
func (b *builder) try(raw any) {
	if v, err := b.out.convert(raw); err == nil && v != nil {
		b.out.Schema.Default = v
	}
}

func (b *builder) integerDefault(text string) {
	if b.modes.Quirks && b.out.Schema.Name != DecimalName {
		// Java: Math.round(Double.parseDouble(text)), which loses digits above
		// 2^53 and saturates.
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			if math.Abs(f) < 1<<52 {
				f = math.Floor(f + 0.5)
			}
			b.out.Schema.Default = saturate(f)
		}
		return
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		b.try(u)
	} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		b.try(n)
	}
}

func saturate(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(f)
	}
}

func (b *builder) yearDefault(text string) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return
	}
	if b.modes.AdjustYears {
		n = int64(adjustYear(int(n)))
	}
	b.out.Schema.Default = n
}

func (b *builder) floatDefault(text string) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return
	}
	if b.out.Schema.Kind == Float32 {
		b.out.Schema.Default = float32(f)
	} else {
		b.out.Schema.Default = f
	}
}

// decimalDefault pads or keeps the digits to the column's scale.
func (b *builder) decimalDefault(text string) {
	whole, frac, _ := strings.Cut(text, ".")
	scale := max(b.col.Scale, 0)
	if len(frac) > scale {
		return // the server stores defaults in the column's own scale
	}
	if scale > 0 {
		whole += "." + frac + strings.Repeat("0", scale-len(frac))
	}
	b.try(whole)
}

// bitDefault reads b'101'.
func (b *builder) bitDefault(text string) {
	inner, ok := strings.CutPrefix(strings.TrimSuffix(text, "'"), "b'")
	if !ok {
		return
	}
	if n, err := strconv.ParseUint(inner, 2, 64); err == nil {
		b.try(n)
	}
}

// binaryDefault reads 0x6162, in which form the server shows the default of a
// binary column, or the text itself.
func (b *builder) binaryDefault(text string) {
	v := []byte(text)
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		if raw, err := hex.DecodeString(digits); err == nil {
			v = raw
		}
	}
	if b.col.Type == schema.Binary && len(v) < b.col.Length {
		v = append(v, make([]byte, b.col.Length-len(v))...)
	}
	if b.modes.Quirks {
		v = asShown(v)
	}
	b.try(v)
}

// asShown is what Debezium takes out of the text of SHOW CREATE TABLE for a default
// of bytes: the text between the quotes with its escapes; where the server writes
// 0x00FF instead, the digits but for the last, since it cuts off what should be a
// quote.
func asShown(v []byte) []byte {
	if utf8.Valid(v) {
		return []byte(shownBytes.Replace(string(v)))
	}
	digits := bytes.ToUpper(hex.AppendEncode(nil, v))
	return digits[:len(digits)-1]
}

var shownBytes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\x00", `\0`, "'", "''")

// epoch is what Debezium takes for CURRENT_TIMESTAMP in a DEFAULT clause.
const epoch = "1970-01-01 00:00:00"

func isNow(expr string) bool {
	return strings.HasPrefix(strings.ToUpper(expr), "CURRENT_TIMESTAMP")
}

func (b *builder) temporalDefault(text string) {
	if b.col.Type == schema.Time {
		b.try(text)
		return
	}
	_, _, _, zero, ok := parseDate(text[:min(len(text), 10)])
	if b.col.Type == schema.Timestamp {
		switch {
		case ok && !zero && text != epoch:
			b.try(text)
		case !b.col.Nullable:
			b.out.Schema.Default = "1970-01-01T00:00:00Z"
		}
		return
	}
	zeroText := epoch
	if b.col.Type == schema.Date {
		zeroText, text = epoch[:10], text[:min(len(text), 10)]
	}
	switch {
	case ok && !zero:
		b.try(text)
	case !b.col.Nullable:
		b.try(zeroText)
	}
}
