package converter

import "strconv"

// bytesOfDigits is how many bytes 0..9 leftover digits take in MySQL's binary
// DECIMAL (decimal.cc: dig2bytes).
var bytesOfDigits = [10]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// decimal prints an opaque DECIMAL: precision, scale, then MySQL's binary decimal.
func (p *jsonPrinter) decimal(body []byte) error {
	if len(body) < 2 {
		return errJSON
	}
	precision, scale, digits := int(body[0]), int(body[1]), body[2:]
	if scale > precision || precision > 65 || scale > 30 || precision == 0 {
		return errJSON
	}
	integer := precision - scale
	size := integer/9*4 + bytesOfDigits[integer%9] + scale/9*4 + bytesOfDigits[scale%9]
	if len(digits) < size || size > 40 {
		return errJSON
	}
	var buf [40]byte
	b := buf[:copy(buf[:size], digits)]
	negative := b[0]&0x80 == 0
	b[0] ^= 0x80
	if negative {
		p.dst = append(p.dst, '-')
		for i := range b {
			b[i] = ^b[i]
		}
	}
	start := len(p.dst)
	p.dst, b = appendDigitGroup(p.dst, b, integer%9)
	for range integer / 9 {
		p.dst, b = appendDigitGroup(p.dst, b, 9)
	}
	p.trimZeros(start)
	if scale == 0 {
		return nil
	}
	p.dst = append(p.dst, '.')
	for range scale / 9 {
		p.dst, b = appendDigitGroup(p.dst, b, 9)
	}
	p.dst, _ = appendDigitGroup(p.dst, b, scale%9)
	return nil
}

// appendDigitGroup reads the big-endian group of n digits at the start of b.
func appendDigitGroup(dst, b []byte, n int) (out, rest []byte) {
	size := bytesOfDigits[n]
	v := uint64(0)
	for _, c := range b[:size] {
		v = v<<8 | uint64(c)
	}
	var buf [20]byte
	text := strconv.AppendUint(buf[:0], v, 10)
	for i := len(text); i < n; i++ {
		dst = append(dst, '0')
	}
	if n > 0 {
		dst = append(dst, text...)
	}
	return dst, b[size:]
}

// trimZeros removes leading zeros of the number that starts at start, but its last digit.
func (p *jsonPrinter) trimZeros(start int) {
	n := p.dst[start:]
	for len(n) > 1 && n[0] == '0' {
		n = n[1:]
	}
	p.dst = append(p.dst[:start], n...)
	if len(p.dst) == start {
		p.dst = append(p.dst, '0')
	}
}
