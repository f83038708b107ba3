// Package envelope is the form in which values are kept that outlive the program that
// wrote them: "version crc32c {json}", on one line. A person can read it, a program
// notices when a byte is wrong, and an older release stops at what a newer one wrote
// in place of passing over what it does not know.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

var (
	// ErrNewer: the value has a version that the reader does not know yet.
	ErrNewer = errors.New("the state was written by a newer release")
	// ErrDamaged: the value is not what Seal has written.
	ErrDamaged = errors.New("the state is damaged")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal writes a value. version counts from 1, for each kind of value by itself; a
// field or a meaning that older releases do not know needs the next one.
func Seal(version int, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%d %08x ", version, crc32.Checksum(body, castagnoli)), body...), nil
}

// Open reads into a pointer what Seal has written in a version up to the given one,
// and refuses fields that the pointer's type has not. The error is ErrNewer or
// ErrDamaged; none of them holds any of the value.
func Open(data []byte, version int, into any) error {
	number, rest, _ := bytes.Cut(data, []byte(" "))
	sum, body, whole := bytes.Cut(rest, []byte(" "))
	had, err := strconv.ParseUint(string(number), 10, 31)
	want, sumErr := strconv.ParseUint(string(sum), 16, 32)
	switch {
	case err != nil || had == 0:
		return fmt.Errorf("%w: its %d bytes do not begin with a version", ErrDamaged, len(data))
	case had > uint64(version): // what comes behind the version may have another form then
		return fmt.Errorf("%w: it has version %d, this release knows up to %d", ErrNewer, had, version)
	case sumErr != nil || !whole:
		return fmt.Errorf("%w: its %d bytes have no checksum", ErrDamaged, len(data))
	}
	if got := crc32.Checksum(body, castagnoli); uint64(got) != want {
		return fmt.Errorf("%w: the checksum of its %d bytes is %08x instead of %08x", ErrDamaged, len(data), got, want)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if dec.More() {
		return fmt.Errorf("%w: something follows the value", ErrDamaged)
	}
	return nil
}
