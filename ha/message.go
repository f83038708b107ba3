package ha

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const maxMessage = 2 * maxCommand

// writeMessage writes a value as JSON, with its length in front.
func writeMessage(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding message: %w", err)
	}
	if len(body) > maxMessage {
		return fmt.Errorf("encoding message: %d bytes are above the limit of %d", len(body), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readMessage reads what writeMessage has written.
func readMessage(r io.Reader, v any) error {
	size, err := messageSize(r)
	if err != nil {
		return err
	}
	body, err := messageBody(r, size)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

// messageSize reads the length in front of a message.
func messageSize(r io.Reader) (int, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > maxMessage {
		return 0, fmt.Errorf("reading message: %d bytes are above the limit of %d", size, maxMessage)
	}
	return int(size), nil
}

// messageBody reads a message, and allocates as it comes: the length is only a claim.
func messageBody(r io.Reader, size int) ([]byte, error) {
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(size)); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}
