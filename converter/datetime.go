package converter

import "math"

func (b *builder) date() {
	switch b.modes.Time {
	case TimeConnect:
		b.set(&Schema{Kind: Int32, Name: ConnectDateName, Version: version1()}, int64(0), b.epochDays)
	case TimeISOString:
		b.set(&Schema{Kind: String, Name: "io.debezium.time.IsoDate", Version: version1()}, "1970-01-01Z", b.isoDate)
	default:
		b.set(&Schema{Kind: Int32, Name: "io.debezium.time.Date", Version: version1()}, int64(0), b.epochDays)
	}
}

func (b *builder) time() {
	switch b.modes.Time {
	case TimeConnect:
		b.set(&Schema{Kind: Int32, Name: ConnectTimeName, Version: version1()}, int64(0), b.timeMillis)
	case TimeISOString:
		b.set(&Schema{Kind: String, Name: "io.debezium.time.IsoTime", Version: version1()}, "00:00:00Z", b.isoTime)
	case TimeNanoseconds:
		b.set(&Schema{Kind: Int64, Name: "io.debezium.time.NanoTime", Version: version1()}, int64(0), b.scaledTime(1000))
	default:
		b.set(&Schema{Kind: Int64, Name: "io.debezium.time.MicroTime", Version: version1()}, int64(0), b.scaledTime(1))
	}
}

func (b *builder) dateTime() {
	name, convert := MicroTimestampName, b.epochMicros
	switch {
	case b.modes.Time == TimeConnect:
		name, convert = ConnectTimestampName, b.epochMillis
	case b.modes.Time == TimeISOString:
		b.set(&Schema{Kind: String, Name: "io.debezium.time.IsoTimestamp", Version: version1()}, "1970-01-01T00:00:00Z",
			b.isoDateTime)
		return
	case b.modes.Time == TimeNanoseconds:
		name, convert = NanoTimestampName, b.epochNanos
	case b.modes.Time == TimeAdaptiveMicroseconds && b.col.FSP <= 3:
		name, convert = TimestampName, b.epochMillis
	}
	b.set(&Schema{Kind: Int64, Name: name, Version: version1()}, int64(0), convert)
}

// day reads the date at the start of raw as a day number. zero is a date with a
// zero part, which is null. A day that its month does not have is refused: MySQL
// stores one under sql_mode ALLOW_INVALID_DATES, and Debezium stops there too.
func (b *builder) day(raw any) (day int64, rest string, zero bool, err error) {
	s, ok := raw.(string)
	if !ok || len(s) < 10 {
		return 0, "", false, b.wrong()
	}
	y, m, d, zero, ok := parseDate(s[:10])
	if !ok {
		return 0, "", false, b.wrong()
	}
	if zero {
		return 0, "", true, nil
	}
	if d > daysIn(y, m) {
		return 0, "", false, b.refuse("holds a day that its month does not have")
	}
	if b.modes.AdjustYears && y < 100 {
		y = adjustYear(y)
	}
	return epochDay(y, m, d), s[10:], false, nil
}

// micros reads a DATETIME as microseconds since the epoch, taken as UTC.
func (b *builder) micros(raw any) (micros int64, zero bool, err error) {
	day, rest, zero, err := b.day(raw)
	if err != nil || zero {
		return 0, zero, err
	}
	if len(rest) < 9 || rest[0] != ' ' || rest[3] != ':' {
		return 0, false, b.wrong()
	}
	clock, ok := parseClock(rest[1:])
	if !ok || clock >= microsPerDay {
		return 0, false, b.wrong()
	}
	return day*microsPerDay + clock, false, nil
}

func (b *builder) epochDays(raw any) (any, error) {
	day, rest, zero, err := b.day(raw)
	if err != nil || zero {
		return nil, err
	}
	if rest != "" {
		return nil, b.wrong()
	}
	return day, nil
}

func (b *builder) isoDate(raw any) (any, error) {
	day, err := b.epochDays(raw)
	if err != nil || day == nil {
		return nil, err
	}
	y, m, d := civil(day.(int64))
	return string(append(appendDate(nil, y, m, d), 'Z')), nil
}

func (b *builder) epochMillis(raw any) (any, error) {
	micros, zero, err := b.micros(raw)
	if err != nil || zero {
		return nil, err
	}
	return floorDiv(micros, 1000), nil
}

func (b *builder) epochMicros(raw any) (any, error) {
	micros, zero, err := b.micros(raw)
	if err != nil || zero {
		return nil, err
	}
	return micros, nil
}

func (b *builder) epochNanos(raw any) (any, error) {
	micros, zero, err := b.micros(raw)
	if err != nil || zero {
		return nil, err
	}
	if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
		return b.lost("is outside the years 1677 to 2262, which time.precision.mode=nanoseconds cannot express")
	}
	return micros * 1000, nil
}

// lost is for a value that the chosen mode cannot express. Debezium logs a warning
// and sends null in its place, or the column's default; where there is neither it
// stops too.
func (b *builder) lost(reason string) (any, error) {
	if b.modes.Quirks && (b.col.Nullable || b.out.Schema.Default != nil) {
		return nil, nil
	}
	return nil, b.refuse(reason)
}

func (b *builder) isoDateTime(raw any) (any, error) {
	micros, zero, err := b.micros(raw)
	if err != nil || zero {
		return nil, err
	}
	day := floorDiv(micros, microsPerDay)
	y, m, d := civil(day)
	dst := append(appendDate(nil, y, m, d), 'T')
	return string(append(appendTimeOfDay(dst, micros-day*microsPerDay), 'Z')), nil
}

func (b *builder) clock(raw any) (int64, error) {
	s, ok := raw.(string)
	if !ok {
		return 0, b.wrong()
	}
	micros, ok := parseTime(s)
	if !ok {
		return 0, b.wrong()
	}
	return micros, nil
}

func (b *builder) scaledTime(factor int64) func(any) (any, error) {
	return func(raw any) (any, error) {
		micros, err := b.clock(raw)
		if err != nil {
			return nil, err
		}
		return micros * factor, nil
	}
}

const outsideDay = "is outside 00:00:00 to 24:00:00, which this time.precision.mode cannot express"

func (b *builder) timeMillis(raw any) (any, error) {
	micros, err := b.clock(raw)
	if err != nil {
		return nil, err
	}
	if micros < 0 || micros > microsPerDay {
		return b.lost(outsideDay)
	}
	return micros / 1000, nil
}

func (b *builder) isoTime(raw any) (any, error) {
	micros, err := b.clock(raw)
	if err != nil {
		return nil, err
	}
	if micros < 0 || micros > microsPerDay {
		return b.lost(outsideDay)
	}
	return string(append(appendTimeOfDay(nil, micros%microsPerDay), 'Z')), nil
}

// zeroTimestamp stands for a TIMESTAMP of zeros.
const zeroTimestamp = "1970-01-01T00:00:00Z"

// timestamp rewrites "YYYY-MM-DD hh:mm:ss[.f]" in UTC as ISO text with the
// column's own number of fraction digits.
func (b *builder) timestamp(raw any) (any, error) {
	s, ok := raw.(string)
	if !ok || len(s) < 19 || s[10] != ' ' {
		return nil, b.wrong()
	}
	_, _, _, zero, ok := parseDate(s[:10])
	if _, clockOK := parseClock(s[11:]); !ok || !clockOK {
		return nil, b.wrong()
	}
	if zero && b.modes.ZeroTimestampIsEpoch {
		return zeroTimestamp, nil
	}
	if zero {
		return nil, nil
	}
	out := append(make([]byte, 0, len(s)+1), s...)
	out[10] = 'T'
	return string(append(out, 'Z')), nil
}

// timestampRead is timestamp for rows that were read with SELECT: Debezium writes
// no more fraction digits than needed there.
func (b *builder) timestampRead(raw any) (any, error) {
	v, err := b.timestamp(raw)
	if err != nil || v == nil {
		return nil, err
	}
	s := v.(string)
	end := len(s) - 1
	if end <= 20 {
		return v, nil
	}
	for end > 20 && s[end-1] == '0' {
		end--
	}
	if s[end-1] == '.' {
		end--
	}
	return s[:end] + "Z", nil
}
