package ha

import (
	"fmt"
	"io"
	"time"

	"github.com/binlog-outbox/binlog-outbox/envelope"
)

const (
	// snapshotVersion is the version that this release writes, and the newest that it
	// reads. A new field needs a new version.
	snapshotVersion = 1
	// maxSnapshot bounds what is read of a file that is no snapshot, in bytes.
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

// writeImage writes the state. The same state always gives the same bytes.
func writeImage(w io.Writer, img *image) error {
	data, err := envelope.Seal(snapshotVersion, img)
	if err != nil {
		return fmt.Errorf("encoding snapshot: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	return nil
}

func readImage(r io.Reader) (*image, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err != nil {
		return nil, fmt.Errorf("%w: reading snapshot: %w", ErrCorrupt, err)
	}
	if len(data) > maxSnapshot {
		return nil, fmt.Errorf("%w: the snapshot has more than %d bytes", ErrCorrupt, maxSnapshot)
	}
	img := new(image)
	if err := envelope.Open(data, snapshotVersion, img); err != nil {
		return nil, fmt.Errorf("decoding snapshot: %w", err)
	}
	if img.Connectors == nil {
		img.Connectors = map[string]State{}
	}
	return img, nil
}
