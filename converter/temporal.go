package converter

import (
	"strconv"
)

// Dates count days since 1970-01-01 in the proleptic Gregorian calendar, as
// java.time does; times of day count microseconds.
const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
	millisPerDay    = 86_400_000
)

// epochDay returns the day number of a date (Howard Hinnant's days_from_civil).
func epochDay(year, month, day int) int64 {
	y := int64(year)
	if month <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	mp := int64(month+9) % 12
	doy := (153*mp+2)/5 + int64(day) - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// civil is the reverse of epochDay.
func civil(days int64) (year, month, day int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	month = int(mp+2)%12 + 1
	year = int(yoe + era*400)
	if month <= 2 {
		year++
	}
	return year, month, int(doy - (153*mp+2)/5 + 1)
}

// julian returns the Julian calendar's date, which java.util.Date shows before
// 1582-10-15.
func julian(days int64) (year, month, day int) {
	c := days + 719470 // days since 0000-03-01 of the Julian calendar
	y := floorDiv(4*c+3, 1461)
	doy := c - floorDiv(1461*y, 4)
	mp := (5*doy + 2) / 153
	month = int(mp+2)%12 + 1
	year = int(y)
	if month <= 2 {
		year++
	}
	return year, month, int(doy - (153*mp+2)/5 + 1)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

var monthDays = [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func daysIn(year, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return monthDays[month-1]
}

// digits reads n decimal digits of s at i.
func digits(s string, i, n int) (int, bool) {
	if i+n > len(s) {
		return 0, false
	}
	v := 0
	for _, c := range []byte(s[i : i+n]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int(c-'0')
	}
	return v, true
}

// parseDate reads "YYYY-MM-DD". zero reports that a part is zero, which has no
// place in the calendar.
func parseDate(s string) (year, month, day int, zero, ok bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, 0, 0, false, false
	}
	year, ok1 := digits(s, 0, 4)
	month, ok2 := digits(s, 5, 2)
	day, ok3 := digits(s, 8, 2)
	if !ok1 || !ok2 || !ok3 || month > 12 || day > 31 {
		return 0, 0, 0, false, false
	}
	zero = year == 0 || month == 0 || day == 0
	return year, month, day, zero, true
}

// adjustYear is Debezium's enable.time.adjuster: years of two digits are of the
// last century or this one.
func adjustYear(year int) int {
	switch {
	case year >= 0 && year <= 69:
		return year + 2000
	case year >= 70 && year <= 99:
		return year + 1900
	default:
		return year
	}
}

// parseFraction reads ".ffffff" of up to six digits, or nothing, as microseconds.
func parseFraction(s string) (micros int64, ok bool) {
	if s == "" {
		return 0, true
	}
	n := len(s) - 1
	if s[0] != '.' || n < 1 || n > 6 {
		return 0, false
	}
	v, ok := digits(s, 1, n)
	for ; n < 6; n++ {
		v *= 10
	}
	return int64(v), ok
}

// parseClock reads "HH:MM:SS[.ffffff]" with two or three digits of hours.
func parseClock(s string) (micros int64, ok bool) {
	h := 2
	if len(s) > 3 && s[2] != ':' {
		h = 3
	}
	if len(s) < h+6 || s[h] != ':' || s[h+3] != ':' {
		return 0, false
	}
	hour, ok1 := digits(s, 0, h)
	minute, ok2 := digits(s, h+1, 2)
	second, ok3 := digits(s, h+4, 2)
	frac, ok4 := parseFraction(s[h+6:])
	if !ok1 || !ok2 || !ok3 || !ok4 || minute > 59 || second > 59 {
		return 0, false
	}
	return int64(hour*3600+minute*60+second)*microsPerSecond + frac, true
}

// parseTime reads TIME, which may be negative and longer than a day.
func parseTime(s string) (micros int64, ok bool) {
	if len(s) > 0 && s[0] == '-' {
		micros, ok = parseClock(s[1:])
		return -micros, ok
	}
	return parseClock(s)
}

func appendPadded(dst []byte, v int64, width int) []byte {
	limit := int64(1)
	for range width - 1 {
		limit *= 10
	}
	for ; v < limit && limit > 1; limit /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, v, 10)
}

func appendDate(dst []byte, year, month, day int) []byte {
	dst = append(appendPadded(dst, int64(year), 4), '-')
	dst = append(appendPadded(dst, int64(month), 2), '-')
	return appendPadded(dst, int64(day), 2)
}

// appendTimeOfDay appends "HH:MM:SS" and the fraction without trailing zeros.
func appendTimeOfDay(dst []byte, micros int64) []byte {
	seconds, frac := micros/microsPerSecond, micros%microsPerSecond
	dst = append(appendPadded(dst, seconds/3600, 2), ':')
	dst = append(appendPadded(dst, seconds/60%60, 2), ':')
	dst = appendPadded(dst, seconds%60, 2)
	if frac == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), frac, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// isConnectTime reports the logical types whose Java value is a java.util.Date.
func isConnectTime(name string) bool {
	return name == ConnectDateName || name == ConnectTimeName || name == ConnectTimestampName
}

// connectMillis is the java.util.Date, in milliseconds, behind a value.
func connectMillis(s *Schema, v int64) int64 {
	if s.Name == ConnectDateName {
		return v * millisPerDay
	}
	return v
}

// appendISODate writes a java.util.Date as Connect's Values class does in UTC:
// the time alone below one day (so for all negative ones), the date alone for
// whole days.
func appendISODate(dst []byte, millis int64) []byte {
	days := floorDiv(millis, millisPerDay)
	clock := millis - days*millisPerDay
	year, month, day := civil(days)
	switch {
	case millis < millisPerDay:
	case clock == 0:
		return appendDate(dst, year, month, day)
	default:
		dst = append(appendDate(dst, year, month, day), 'T')
	}
	dst = appendTimeOfDay(dst, clock/1000*1000*1000)
	dst = appendPadded(append(dst, '.'), clock%1000, 3)
	return append(dst, 'Z')
}

var (
	weekdays = [...]string{"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"}
	months   = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

// gregorianStart is 1582-10-15, before which java.util.Date counts in the Julian
// calendar.
const gregorianStart = -141427

// appendJavaDate writes java.util.Date.toString in UTC: "Thu Feb 29 12:34:56 UTC 2024".
func appendJavaDate(dst []byte, millis int64) []byte {
	days := floorDiv(millis, millisPerDay)
	year, month, day := civil(days)
	if days < gregorianStart {
		year, month, day = julian(days)
	}
	dst = append(append(dst, weekdays[(days%7+7)%7]...), ' ')
	dst = append(append(dst, months[month-1]...), ' ')
	dst = append(appendPadded(dst, int64(day), 2), ' ')
	dst = appendTimeOfDay(dst, (millis-days*millisPerDay)/1000*microsPerSecond)
	return strconv.AppendInt(append(dst, " UTC "...), int64(year), 10)
}
