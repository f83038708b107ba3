package converter

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

// What a JSON document may ask for. MySQL itself refuses documents deeper than
// 100; the text limit keeps a crafted document of tiny doubles, each of which
// prints up to a thousand digits, from filling the memory.
const (
	maxJSONDepth = 100
	maxJSONText  = 256 << 20
)

// Type bytes of MySQL's binary JSON (sql-common/json_binary.h).
const (
	jsonSmallObject = 0x00
	jsonLargeObject = 0x01
	jsonSmallArray  = 0x02
	jsonLargeArray  = 0x03
	jsonLiteral     = 0x04
	jsonInt16       = 0x05
	jsonUint16      = 0x06
	jsonInt32       = 0x07
	jsonUint32      = 0x08
	jsonInt64       = 0x09
	jsonUint64      = 0x0a
	jsonDouble      = 0x0b
	jsonString      = 0x0c
	jsonOpaque      = 0x0f
)

// Column types inside an opaque value that have a text of their own.
const (
	opaqueDecimalOld  = 0x00
	opaqueTimestamp   = 0x07
	opaqueDate        = 0x0a
	opaqueTime        = 0x0b
	opaqueDateTime    = 0x0c
	opaqueTimestampV2 = 0x11
	opaqueDateTimeV2  = 0x12
	opaqueTimeV2      = 0x13
	opaqueDecimal     = 0xf6
)

var errJSON = dataError("JSON document", "is not MySQL's binary form of JSON")

// AppendJSONDocument appends the text of a JSON column to dst, printed as
// Debezium prints it: in stored order, without blanks, doubles by Java's rules but
// without an exponent, opaque values as base64.
//
// With quirks it prints unsigned 32-bit values and negative TIME values as
// damaged as Debezium does; without, the right values.
//
// doc may be hostile: nesting is limited, every offset must lie inside its
// container and behind the container's header, and no more bytes are ever visited
// than doc has, so the time is linear. An empty doc is an error; the caller knows
// what it stands for.
func AppendJSONDocument(dst, doc []byte, quirks bool) ([]byte, error) {
	if len(doc) == 0 {
		return dst, errJSON
	}
	if doc[0] > jsonOpaque && doc[0] < 0x80 {
		// MariaDB and old dumps store the text itself.
		if !utf8.Valid(doc) {
			return dst, dataError("JSON document", "is not UTF-8")
		}
		return append(dst, doc...), nil
	}
	p := jsonPrinter{dst: dst, start: len(dst), budget: len(doc), quirks: quirks}
	if err := p.value(doc[0], doc[1:], 0); err != nil {
		return dst, err
	}
	return p.dst, nil
}

// jsonPrinter walks one document. budget is what is left of the document's bytes:
// values of a real document share none, so a document that spends more has
// offsets that point into each other.
type jsonPrinter struct {
	dst    []byte
	start  int
	budget int
	quirks bool
}

func (p *jsonPrinter) spend(n int) error {
	if p.budget -= n; p.budget < 0 {
		return errJSON
	}
	if len(p.dst)-p.start > maxJSONText {
		return dataError("JSON document", "has a text of more than 256 MiB")
	}
	return nil
}

// value prints the value of type typ that starts at data[0]; data reaches to the
// end of its container.
func (p *jsonPrinter) value(typ byte, data []byte, depth int) error {
	switch typ {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		if depth >= maxJSONDepth {
			return dataError("JSON document", "is nested more than 100 deep")
		}
		return p.container(typ, data, depth+1)
	case jsonString:
		text, n, err := jsonBytes(data)
		if err != nil {
			return err
		}
		if err := p.spend(n); err != nil {
			return err
		}
		return p.text(text)
	case jsonOpaque:
		return p.opaque(data)
	default:
		return p.scalar(typ, data)
	}
}

func (p *jsonPrinter) scalar(typ byte, data []byte) error {
	size := scalarSize(typ)
	if size == 0 || len(data) < size {
		return errJSON
	}
	if err := p.spend(size); err != nil {
		return err
	}
	switch typ {
	case jsonLiteral:
		return p.literal(data[0])
	case jsonInt16:
		p.dst = strconv.AppendInt(p.dst, int64(int16(binary.LittleEndian.Uint16(data))), 10)
	case jsonUint16:
		p.dst = strconv.AppendUint(p.dst, uint64(binary.LittleEndian.Uint16(data)), 10)
	case jsonInt32:
		p.dst = strconv.AppendInt(p.dst, int64(int32(binary.LittleEndian.Uint32(data))), 10)
	case jsonUint32:
		n := binary.LittleEndian.Uint32(data)
		if p.quirks {
			p.dst = strconv.AppendInt(p.dst, int64(int32(n)), 10)
		} else {
			p.dst = strconv.AppendUint(p.dst, uint64(n), 10)
		}
	case jsonInt64:
		p.dst = strconv.AppendInt(p.dst, int64(binary.LittleEndian.Uint64(data)), 10)
	case jsonUint64:
		p.dst = strconv.AppendUint(p.dst, binary.LittleEndian.Uint64(data), 10)
	case jsonDouble:
		return p.double(math.Float64frombits(binary.LittleEndian.Uint64(data)))
	}
	return nil
}

// scalarSize is the size in bytes of a scalar type, 0 for what is none.
func scalarSize(typ byte) int {
	switch typ {
	case jsonLiteral:
		return 1
	case jsonInt16, jsonUint16:
		return 2
	case jsonInt32, jsonUint32:
		return 4
	case jsonInt64, jsonUint64, jsonDouble:
		return 8
	default:
		return 0
	}
}

func (p *jsonPrinter) literal(b byte) error {
	switch b {
	case 0:
		p.dst = append(p.dst, "null"...)
	case 1:
		p.dst = append(p.dst, "true"...)
	case 2:
		p.dst = append(p.dst, "false"...)
	default:
		return errJSON
	}
	return nil
}

func (p *jsonPrinter) double(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return errJSON // JSON has no such number, MySQL never stores one
	}
	if a := math.Abs(f); f == 0 || a >= 1e-3 && a < 1e7 {
		p.dst = appendDouble(p.dst, f)
	} else {
		p.dst = appendExactDouble(p.dst, f)
	}
	return nil
}

// container prints an object or array: element count and size, then for objects
// the key entries, then the value entries, then keys and values at offsets from
// the container's start.
func (p *jsonPrinter) container(typ byte, data []byte, depth int) error {
	large := typ == jsonLargeObject || typ == jsonLargeArray
	object := typ == jsonSmallObject || typ == jsonLargeObject
	word := 2
	if large {
		word = 4
	}
	if len(data) < 2*word {
		return errJSON
	}
	count, size := jsonWord(data, large), jsonWord(data[word:], large)
	if size > len(data) || size < 2*word {
		return errJSON
	}
	data = data[:size]
	keyEntry, valueEntry, open, end := 0, 1+word, byte('['), byte(']')
	if object {
		keyEntry, open, end = word+2, '{', '}'
	}
	keys := 2 * word
	if count > (size-keys)/(keyEntry+valueEntry) {
		return errJSON
	}
	values := keys + count*keyEntry
	header := values + count*valueEntry
	if err := p.spend(header); err != nil {
		return err
	}
	p.dst = append(p.dst, open)
	for i := range count {
		if i > 0 {
			p.dst = append(p.dst, ',')
		}
		if object {
			if err := p.key(data, data[keys+i*keyEntry:], header, large); err != nil {
				return err
			}
		}
		if err := p.element(data, data[values+i*valueEntry:], header, large, depth); err != nil {
			return err
		}
	}
	p.dst = append(p.dst, end)
	return nil
}

func jsonWord(data []byte, large bool) int {
	if large {
		return int(binary.LittleEndian.Uint32(data))
	}
	return int(binary.LittleEndian.Uint16(data))
}

func (p *jsonPrinter) key(data, entry []byte, header int, large bool) error {
	at := jsonWord(entry, large)
	word := 2
	if large {
		word = 4
	}
	n := int(binary.LittleEndian.Uint16(entry[word:]))
	if at < header || at > len(data) || n > len(data)-at {
		return errJSON
	}
	if err := p.spend(n); err != nil {
		return err
	}
	if err := p.text(data[at : at+n]); err != nil {
		return err
	}
	p.dst = append(p.dst, ':')
	return nil
}

// element prints the value of one value entry: inlined where it fits into the
// entry, else at an offset.
func (p *jsonPrinter) element(data, entry []byte, header int, large bool, depth int) error {
	typ := entry[0]
	size := scalarSize(typ)
	if size > 0 && size <= 2 || large && size == 4 {
		if typ == jsonUint32 && p.quirks {
			return nil // Debezium prints nothing here and so no valid JSON
		}
		p.budget += size // the entry has been paid for
		return p.scalar(typ, entry[1:])
	}
	at := jsonWord(entry[1:], large)
	if at < header || at >= len(data) {
		return errJSON
	}
	return p.value(typ, data[at:], depth)
}

// jsonBytes reads a length of up to 5 bytes with 7 bits each and that many bytes;
// n is what both take.
func jsonBytes(data []byte) (text []byte, n int, err error) {
	length, shift := uint64(0), 0
	for i := 0; i < 5 && i < len(data); i++ {
		length |= uint64(data[i]&0x7f) << shift
		shift += 7
		if data[i]&0x80 != 0 {
			continue
		}
		rest := data[i+1:]
		if length > math.MaxUint32 || length > uint64(len(rest)) {
			return nil, 0, errJSON
		}
		return rest[:length], i + 1 + int(length), nil
	}
	return nil, 0, errJSON
}

const upperHex = "0123456789ABCDEF"

// text prints a quoted string: only quotes, backslashes and controls are escaped.
func (p *jsonPrinter) text(s []byte) error {
	if !utf8.Valid(s) {
		return dataError("JSON document", "holds a text that is not UTF-8")
	}
	p.dst = append(p.dst, '"')
	from := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		p.dst = appendControl(append(p.dst, s[from:i]...), c)
		from = i + 1
	}
	p.dst = append(append(p.dst, s[from:]...), '"')
	return nil
}

// appendControl appends the JSON escape of a quote, a backslash or a control.
func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	default:
		return append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
	}
}

// opaque prints a value that JSON has no type for: a column type, a length and
// the bytes. Temporal values and decimals have a text, others are base64.
func (p *jsonPrinter) opaque(data []byte) error {
	if len(data) < 2 {
		return errJSON
	}
	typ := data[0]
	body, n, err := jsonBytes(data[1:])
	if err != nil {
		return err
	}
	if err := p.spend(1 + n); err != nil {
		return err
	}
	switch typ {
	case opaqueDecimal, opaqueDecimalOld:
		return p.decimal(body)
	case opaqueDate, opaqueDateTime, opaqueDateTimeV2, opaqueTimestamp, opaqueTimestampV2, opaqueTime, opaqueTimeV2:
		if len(body) != 8 {
			return errJSON
		}
		return p.temporal(typ, int64(binary.LittleEndian.Uint64(body)))
	default:
		p.dst = append(p.dst, '"')
		p.dst = base64.StdEncoding.AppendEncode(p.dst, body)
		p.dst = append(p.dst, '"')
	}
	return nil
}

// temporal prints MySQL's packed 64-bit form (my_time.cc: the date in bits 41 up,
// the time in bits 24 up, microseconds below).
func (p *jsonPrinter) temporal(typ byte, packed int64) error {
	isTime := typ == opaqueTime || typ == opaqueTimeV2
	if packed == math.MinInt64 || packed < 0 && !isTime {
		return errJSON
	}
	p.dst = append(p.dst, '"')
	if isTime {
		if packed < 0 && !p.quirks {
			p.dst, packed = append(p.dst, '-'), -packed
		}
		v := packed >> 24
		hour := v >> 12 % 1024
		if packed < 0 {
			hour = -hour
		}
		p.clock(hour, v>>6%64, v%64, packed%(1<<24))
	} else {
		v := packed >> 24
		yearMonth := v >> 22 % (1 << 17)
		p.padded(yearMonth/13, 4)
		p.dst = append(p.dst, '-')
		p.padded(yearMonth%13, 2)
		p.dst = append(p.dst, '-')
		p.padded(v>>17%32, 2)
		if typ != opaqueDate {
			p.dst = append(p.dst, ' ')
			p.clock(v>>12%32, v>>6%64, v%64, packed%(1<<24))
		}
	}
	p.dst = append(p.dst, '"')
	return nil
}

func (p *jsonPrinter) clock(hour, minute, second, micros int64) {
	p.padded(hour, 2)
	p.dst = append(p.dst, ':')
	p.padded(minute, 2)
	p.dst = append(p.dst, ':')
	p.padded(second, 2)
	if micros == 0 {
		return
	}
	p.dst = append(p.dst, '.')
	p.padded(micros, 6)
	for p.dst[len(p.dst)-1] == '0' {
		p.dst = p.dst[:len(p.dst)-1]
	}
}

// padded prints n with leading zeros as for a number of that many digits; the
// zeros of a negative number stand before its sign, as Debezium's do.
func (p *jsonPrinter) padded(n int64, width int) {
	for limit, i := int64(10), 1; i < width; limit, i = limit*10, i+1 {
		if n < limit {
			for ; i < width; i++ {
				p.dst = append(p.dst, '0')
			}
			break
		}
	}
	p.dst = strconv.AppendInt(p.dst, n, 10)
}
