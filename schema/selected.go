package schema

import "fmt"

// DecodeSelected turns a value that a SELECT brought over the text protocol into the
// value documented at Row; nil stays nil. It is the same value that the binlog would
// have brought, but for JSON, which is a string with the text that the server prints.
//
// Expected of the session: character_set_results=NULL, so that text comes in the
// column's own character set, time_zone='+00:00', and no PAD_CHAR_TO_FULL_LENGTH; of
// the statement: the column itself, but FLOAT as SelectExpr has it. raw is what
// go-mysql makes of the text: int64, uint64, float64 or []byte, which is not kept.
// Errors are of type *ValueError.
func (c *Column) DecodeSelected(raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	v, err := c.decodeSelected(raw)
	if err != nil {
		return nil, &ValueError{Column: c.Name, Type: c.Type, Err: err}
	}
	return v, nil
}

// SelectExpr is what to select for the column, given its quoted name: the server
// prints a FLOAT with six digits only, a sum of it as the DOUBLE that it is.
func (c *Column) SelectExpr(quoted string) string {
	if c.Type == Float {
		return quoted + "+0e0"
	}
	return quoted
}

func (c *Column) decodeSelected(raw any) (any, error) {
	switch v := raw.(type) {
	case []byte:
		return c.decodeSelectedText(v)
	case int64:
		switch {
		case c.Type.IsInteger() && c.Unsigned && v >= 0:
			return uint64(v), nil
		case c.Type.IsInteger() && !c.Unsigned, c.Type == Year:
			return v, nil
		}
	case uint64:
		switch {
		case c.Type.IsInteger() && c.Unsigned:
			return v, nil
		case c.Type == Year:
			return int64(v), nil
		}
	case float64:
		switch c.Type {
		case Float:
			return float32(v), nil
		case Double:
			return v, nil
		}
	}
	return nil, errRaw(raw)
}

func (c *Column) decodeSelectedText(b []byte) (any, error) {
	switch c.Type {
	case Decimal:
		return plainDecimal(string(b)), nil
	case Date:
		return string(b), nil
	case Time, DateTime, Timestamp:
		return c.decodeTemporal(string(b))
	case Bit:
		return selectedBits(b)
	case Enum, Set, Char, VarChar, TinyText, Text, MediumText, LongText:
		return c.InvalidText.decode(c.Charset, string(b), true)
	case Binary:
		return padBinary(append([]byte{}, b...), c.Length)
	case VarBinary, TinyBlob, Blob, MediumBlob, LongBlob, Geometry, Vector:
		return append([]byte{}, b...), nil
	case JSON, UUID, Inet4, Inet6:
		return string(b), nil
	case Unknown:
		return nil, fmt.Errorf("values of type %s are not supported", c.sql())
	}
	return nil, errRaw(b)
}

// selectedBits reads a BIT, which comes in big-endian bytes.
func selectedBits(b []byte) (any, error) {
	if len(b) > 8 {
		return nil, fmt.Errorf("value of %d bytes", len(b))
	}
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v, nil
}

// plainDecimal drops the zeros that ZEROFILL puts in front.
func plainDecimal(s string) string {
	for len(s) > 1 && s[0] == '0' && s[1] != '.' {
		s = s[1:]
	}
	return s
}
