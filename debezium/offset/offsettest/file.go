// Package offsettest writes what Connect workers write, for tests.
package offsettest

import "encoding/binary"

// File is a worker's offset.storage.file.filename with these keys and values in turn, as Java
// serialises it. The value "null" is null.
func File(pairs ...string) []byte {
	out := "\xac\xed\x00\x05sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\x00\x02F\x00\x0aloadFactorI\x00\x09thresholdxp?@\x00\x00\x00\x00\x00\x0cw\x08\x00\x00\x00\x10"
	out += string(binary.BigEndian.AppendUint32(nil, uint32(len(pairs)/2)))
	array := "ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
	for _, p := range pairs {
		if p == "null" {
			out += "p"
			continue
		}
		out += array + string(binary.BigEndian.AppendUint32(nil, uint32(len(p)))) + p
		array = "uq\x00~\x00\x02"
	}
	return []byte(out + "x")
}
