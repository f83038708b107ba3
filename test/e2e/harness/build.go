package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the program into dir and returns its path. With
// BINLOG_OUTBOX_E2E_BINARY set, that file is used instead.
func Build(ctx context.Context, dir string) (string, error) {
	if given := os.Getenv("BINLOG_OUTBOX_E2E_BINARY"); given != "" {
		return filepath.Abs(given)
	}
	path := filepath.Join(dir, "binlog-outbox")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path,
		"github.com/binlog-outbox/binlog-outbox/cmd/binlog-outbox").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the connector: %w\n%s", err, out)
	}
	return path, nil
}
