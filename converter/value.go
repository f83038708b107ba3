package converter

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/binlog-outbox/binlog-outbox/schema"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (b *builder) int(raw any) (any, error) {
	switch v := raw.(type) {
	case int64:
		return raw, nil
	case uint64:
		return int64(v), nil // BIGINT UNSIGNED in "long" mode wraps, by definition of the mode
	default:
		return nil, b.wrong()
	}
}

func (b *builder) unsignedDecimal(raw any) (any, error) {
	switch v := raw.(type) {
	case uint64:
		return Decimal(strconv.FormatUint(v, 10)), nil
	case int64:
		return Decimal(strconv.FormatInt(v, 10)), nil
	default:
		return nil, b.wrong()
	}
}

func (b *builder) year(raw any) (any, error) {
	v, err := b.int(raw)
	if err != nil {
		return nil, err
	}
	year := v.(int64)
	switch {
	case year == 0:
		return int64(1900), nil // the binlog holds years since 1900; YEAR 0000 is 0 there
	case year < 100 && b.modes.AdjustYears:
		return int64(adjustYear(int(year))), nil
	default:
		return v, nil
	}
}

// yearRead is year for rows that were read with SELECT, which shows the year 0 as it
// is: Debezium adjusts it as any other of two digits.
func (b *builder) yearRead(raw any) (any, error) {
	v, err := b.int(raw)
	if err != nil || !b.modes.AdjustYears {
		return v, err
	}
	return int64(adjustYear(int(v.(int64)))), nil
}

// float32Read is what is left of a FLOAT in the six digits that a SELECT shows.
func (b *builder) float32Read(raw any) (any, error) {
	v, ok := raw.(float32)
	if !ok {
		return nil, b.wrong()
	}
	shown, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', 6, 64), 32)
	if err != nil {
		return raw, nil //nolint:nilerr // rounded up beyond the largest there is
	}
	return float32(shown), nil
}

func (b *builder) float32(raw any) (any, error) {
	if _, ok := raw.(float32); !ok {
		return nil, b.wrong()
	}
	return raw, nil
}

// float64 also widens the 4 bytes of FLOAT(M,D): 3.14 is 3.140000104904175.
func (b *builder) float64(raw any) (any, error) {
	switch v := raw.(type) {
	case float64:
		return raw, nil
	case float32:
		return float64(v), nil
	default:
		return nil, b.wrong()
	}
}

func (b *builder) decimalPrecise(raw any) (any, error) {
	s, ok := raw.(string)
	if !ok {
		return nil, b.wrong()
	}
	d, ok := newDecimal(s)
	if !ok {
		return nil, b.wrong()
	}
	return d, nil
}

func (b *builder) decimalString(raw any) (any, error) {
	if _, err := b.decimalPrecise(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

func (b *builder) decimalDouble(raw any) (any, error) {
	if _, err := b.decimalPrecise(raw); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(raw.(string), 64)
	if err != nil {
		return nil, b.wrong()
	}
	return f, nil
}

func (b *builder) bool(raw any) (any, error) {
	v, ok := raw.(uint64)
	if !ok {
		return nil, b.wrong()
	}
	return v != 0, nil
}

// bits is little-endian in as many bytes as the column's bits need.
func (b *builder) bits(raw any) (any, error) {
	v, ok := raw.(uint64)
	if !ok {
		return nil, b.wrong()
	}
	return bitsLE(v, b.col.Length), nil
}

func bitsLE(v uint64, length int) []byte {
	out := binary.LittleEndian.AppendUint64(make([]byte, 0, 8), v)
	return out[:min((length+7)/8, 8)]
}

func (b *builder) text(raw any) (any, error) {
	if _, ok := raw.(string); !ok {
		return nil, b.wrong()
	}
	return raw, nil
}

func (b *builder) escapedSet(raw any) (any, error) {
	s, ok := raw.(string)
	if !ok {
		return nil, b.wrong()
	}
	return ddlEscapes.Replace(s), nil
}

func (b *builder) bytes(raw any) (any, error) {
	if _, ok := raw.([]byte); !ok {
		return nil, b.wrong()
	}
	return raw, nil
}

func (b *builder) binaryText(raw any) (any, error) {
	v, ok := raw.([]byte)
	if !ok {
		return nil, b.wrong()
	}
	return b.encode(v), nil
}

func (b *builder) encode(v []byte) string {
	switch b.modes.Binary {
	case BinaryBase64:
		return base64.StdEncoding.EncodeToString(v)
	case BinaryBase64URLSafe:
		return base64.URLEncoding.EncodeToString(v)
	default:
		return hex.EncodeToString(v)
	}
}

// json hands the binary document on: it is printed straight into the converter's
// buffer. A document of no bytes is what INSERT IGNORE may leave; it is null.
func (b *builder) json(raw any) (any, error) {
	switch v := raw.(type) {
	case string:
		return raw, nil
	case []byte:
		if len(v) == 0 {
			return nil, nil
		}
		return raw, nil
	default:
		return nil, b.wrong()
	}
}

// geometry is MySQL's form: the SRID in 4 bytes, then WKB.
func (b *builder) geometry() {
	srid := &Schema{Kind: Int32, Optional: true}
	if b.col.ColumnType == "point" {
		s := &Schema{
			Kind: Record, Name: geometryPrefix + "Point", Version: version1(), Doc: "Geometry (POINT)",
			Fields: []Field{
				{"x", &Schema{Kind: Float64}},
				{"y", &Schema{Kind: Float64}},
				{"wkb", &Schema{Kind: Bytes, Optional: true}},
				{"srid", srid},
			},
		}
		b.set(s, nil, b.point)
		return
	}
	s := &Schema{
		Kind: Record, Name: geometryPrefix + "Geometry", Version: version1(), Doc: "Geometry",
		Fields: []Field{{"wkb", &Schema{Kind: Bytes}}, {"srid", srid}},
	}
	b.set(s, nil, func(raw any) (any, error) {
		wkb, srid, err := b.wkb(raw)
		return &Struct{Schema: s, Values: []any{wkb, srid}}, err
	})
	s.Optional = true // in Debezium even where the column is NOT NULL
}

func (b *builder) wkb(raw any) (wkb []byte, srid any, err error) {
	v, ok := raw.([]byte)
	if !ok || len(v) < 9 {
		return nil, nil, b.wrong()
	}
	if n := binary.LittleEndian.Uint32(v); n != 0 {
		srid = int64(int32(n))
	}
	return v[4:], srid, nil
}

func (b *builder) point(raw any) (any, error) {
	wkb, srid, err := b.wkb(raw)
	if err != nil {
		return nil, err
	}
	if len(wkb) != 21 {
		return nil, b.refuse("is not a point")
	}
	var order binary.ByteOrder = binary.LittleEndian
	if wkb[0] == 0 {
		order = binary.BigEndian
	}
	if order.Uint32(wkb[1:]) != 1 {
		return nil, b.refuse("is not a point")
	}
	x, y := math.Float64frombits(order.Uint64(wkb[5:])), math.Float64frombits(order.Uint64(wkb[13:]))
	return &Struct{Schema: b.out.Schema, Values: []any{x, y, wkb, srid}}, nil
}

func (b *builder) vector() {
	s := &Schema{Kind: Array, Name: "io.debezium.data.FloatVector", Version: version1(), Elem: &Schema{Kind: Float32}}
	b.set(s, []any{}, func(raw any) (any, error) {
		v, ok := raw.([]byte)
		if !ok || len(v)%4 != 0 {
			return nil, b.wrong()
		}
		list := make([]any, 0, len(v)/4)
		for ; len(v) > 0; v = v[4:] {
			list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(v)))
		}
		return list, nil
	})
}

func (b *builder) temporal() {
	switch b.col.Type {
	case schema.Date:
		b.date()
	case schema.Time:
		b.time()
	case schema.DateTime:
		b.dateTime()
	default:
		s := &Schema{Kind: String, Name: "io.debezium.time.ZonedTimestamp", Version: version1()}
		b.set(s, zeroTimestamp, b.timestamp)
		b.out.convertRead = b.timestampRead
	}
}
