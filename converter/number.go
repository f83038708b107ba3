package converter

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// appendDouble appends what Java's Double.toString returns (JDK 19 and newer):
// at least one digit after the point, an exponent outside 1e-3 <= |x| < 1e7.
func appendDouble(dst []byte, f float64) []byte { return appendJavaNumber(dst, f, 64) }

// appendFloat appends what Java's Float.toString returns.
func appendFloat(dst []byte, f float32) []byte { return appendJavaNumber(dst, float64(f), 32) }

func appendJavaNumber(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0:
		if math.Signbit(f) {
			dst = append(dst, '-')
		}
		return append(dst, "0.0"...)
	}
	var buf [32]byte
	sci := strconv.AppendFloat(buf[:0], f, 'e', -1, bits)
	if sci[0] == '-' {
		dst, sci = append(dst, '-'), sci[1:]
		f = -f
	}
	if sci[1] == 'e' {
		// Where one digit is enough Java looks at all decimals of two digits and
		// takes the nearest: 4.9E-324, not 5e-324.
		var two [32]byte
		t := strconv.AppendFloat(two[:0], f, 'e', 1, bits)
		if back, err := strconv.ParseFloat(string(t), bits); err == nil && back == f {
			sci = append(buf[:0], t...)
		}
	}
	digits, exp := splitScientific(sci)
	if f >= 1e-3 && f < 1e7 {
		return appendPlain(dst, digits, exp)
	}
	dst = append(append(dst, digits[0]), '.')
	if len(digits) == 1 {
		dst = append(dst, '0')
	} else {
		dst = append(dst, digits[1:]...)
	}
	return strconv.AppendInt(append(dst, 'E'), int64(exp), 10)
}

// splitScientific takes "d.ddde±xx" apart into its digits, without trailing zeros
// behind the first, and its exponent. It overwrites sci.
func splitScientific(sci []byte) (digits []byte, exp int) {
	e := len(sci) - 1
	for sci[e] != 'e' {
		e--
	}
	exp, _ = strconv.Atoi(string(sci[e+1:]))
	digits = sci[:1]
	if e > 2 {
		digits = append(digits, sci[2:e]...)
	}
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, exp
}

// appendPlain writes digits as d.ddd * 10^exp without an exponent, with at least
// one digit after the point.
func appendPlain(dst, digits []byte, exp int) []byte {
	if exp < 0 {
		dst = append(dst, "0."...)
		for i := exp + 1; i < 0; i++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	for i := 0; i <= exp; i++ {
		if i < len(digits) {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	if dst = append(dst, '.'); len(digits) > exp+1 {
		return append(dst, digits[exp+1:]...)
	}
	return append(dst, '0')
}

// appendExactDouble appends the full decimal expansion of f without an exponent
// (Java's new BigDecimal(double).toPlainString()). f must be finite.
func appendExactDouble(dst []byte, f float64) []byte {
	frac, exp := math.Frexp(f)
	// f = m * 2^(exp-53) with an integer m: an odd m / 2^k has exactly k decimals.
	m, decimals := int64(math.Ldexp(frac, 53)), 53-exp
	for ; decimals > 0 && m&1 == 0; decimals-- {
		if m == 0 {
			decimals = 0
			break
		}
		m >>= 1
	}
	return strconv.AppendFloat(dst, f, 'f', max(decimals, 0), 64)
}

// Decimal is Java's BigDecimal with a scale of zero or more, held as plain digits
// with exactly that many decimals, which is BigDecimal.toPlainString: "-12.50", "7".
type Decimal string

func (d Decimal) split() (negative bool, digits string, scale int) {
	s := string(d)
	if strings.HasPrefix(s, "-") {
		negative, s = true, s[1:]
	}
	if dot := strings.IndexByte(s, '.'); dot >= 0 {
		scale = len(s) - dot - 1
		s = s[:dot] + s[dot+1:]
	}
	if s = strings.TrimLeft(s, "0"); s == "" {
		return false, "0", scale
	}
	return negative, s, scale
}

// AppendText appends BigDecimal.toString, which has an exponent where the scale is
// large beside the number of digits: "1E-8", "1.0E-7".
func (d Decimal) AppendText(dst []byte) []byte {
	negative, digits, scale := d.split()
	adjusted := len(digits) - 1 - scale
	if adjusted >= -6 {
		return append(dst, d...)
	}
	if negative {
		dst = append(dst, '-')
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	return strconv.AppendInt(append(dst, 'E'), int64(adjusted), 10)
}

// unscaled appends the big-endian two's complement of the unscaled value in as few
// bytes as hold it (BigInteger.toByteArray).
func (d Decimal) unscaled(dst []byte) []byte {
	negative, digits, _ := d.split()
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return append(dst, 0)
	}
	if negative {
		// -n in len bytes is the complement of n-1.
		raw := n.Sub(n, big.NewInt(1)).Bytes()
		if len(raw) == 0 || raw[0]&0x80 != 0 {
			dst = append(dst, 0xff)
		}
		for _, b := range raw {
			dst = append(dst, ^b)
		}
		return dst
	}
	raw := n.Bytes()
	if len(raw) == 0 || raw[0]&0x80 != 0 {
		dst = append(dst, 0)
	}
	return append(dst, raw...)
}

// newDecimal checks that s is plain decimal digits.
func newDecimal(s string) (Decimal, bool) {
	digits, dots := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.':
			dots++
		case c == '-' && i == 0:
		default:
			return "", false
		}
	}
	return Decimal(s), digits > 0 && dots <= 1
}
