package ha

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

const (
	snapshotFormat = "binlog-outbox raft snapshot"
	// snapshotVersion is the newest version that this release writes and reads. A
	// new field needs a new version; see commandVersion, whose numbers they share.
	snapshotVersion = 2
	// maxSnapshot guards a damaged header from asking for all memory, in bytes.
	maxSnapshot = 1 << 30
)

// image is everything that the state machine holds.
type image struct {
	Cluster    string           `json:"cluster"`
	Lead       leadRecord       `json:"lead"`
	Connectors map[string]State `json:"connectors"`
	Audit      []AuditEntry     `json:"audit"`
}

// leadRecord is the last leadership that took effect.
type leadRecord struct {
	Term uint64    `json:"term"`
	Node string    `json:"node"`
	At   time.Time `json:"at,omitzero"`
}

// needs is the oldest version that has all of the image.
func (i *image) needs() int {
	for _, s := range i.Connectors {
		if s.Restarts > 0 || newer(&s.Position) {
			return 2
		}
	}
	return 1
}

type snapshotHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Length  int64  `json:"length"`
	CRC32C  uint32 `json:"crc32c"`
}

// writeImage writes a header line and the state as JSON. The same state always
// gives the same bytes.
func writeImage(w io.Writer, img *image) error {
	body, err := json.Marshal(img)
	if err != nil {
		return fmt.Errorf("encoding snapshot: %w", err)
	}
	head, err := json.Marshal(snapshotHeader{snapshotFormat, img.needs(), int64(len(body)), checksum(body)})
	if err != nil {
		return fmt.Errorf("encoding snapshot header: %w", err)
	}
	for _, part := range [][]byte{head, {'\n'}, body} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("writing snapshot: %w", err)
		}
	}
	return nil
}

func readImage(r io.Reader) (*image, error) {
	br := bufio.NewReader(r)
	line, err := br.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: snapshot has no header: %w", ErrCorrupt, err)
	}
	var head snapshotHeader
	if err := json.Unmarshal(line, &head); err != nil || head.Format != snapshotFormat {
		return nil, fmt.Errorf("%w: snapshot header is not ours", ErrCorrupt)
	}
	if head.Version > snapshotVersion {
		return nil, fmt.Errorf("%w: snapshot has version %d, this release reads up to %d", ErrNewerFormat, head.Version, snapshotVersion)
	}
	if head.Version < 1 || head.Length < 0 || head.Length > maxSnapshot {
		return nil, fmt.Errorf("%w: snapshot header claims version %d and %d bytes", ErrCorrupt, head.Version, head.Length)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, br, head.Length); err != nil {
		return nil, fmt.Errorf("%w: snapshot ends after %d of %d bytes: %w", ErrCorrupt, body.Len(), head.Length, err)
	}
	if checksum(body.Bytes()) != head.CRC32C {
		return nil, fmt.Errorf("%w: checksum of the snapshot does not match", ErrCorrupt)
	}
	img := new(image)
	if err := decodeStrict(body.Bytes(), img); err != nil {
		return nil, fmt.Errorf("%w: decoding snapshot: %w", ErrCorrupt, err)
	}
	if img.Connectors == nil {
		img.Connectors = map[string]State{}
	}
	return img, nil
}
