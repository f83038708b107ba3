package servers

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// NPMFile returns the content of one file of an npm package, such as
// "package/LICENSE" of "axe-core@4.14.1", which is fetched with npm if need be.
// integrity is the package's, as lock files write it: sha512-...
func NPMFile(ctx context.Context, spec, integrity, file string, log io.Writer) ([]byte, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "npm", spec)
	err = build(ctx, dir, func(tmp string) error {
		npm, err := tool(ctx, "npm", "npm", log)
		if err != nil {
			return err
		}
		say(log, "fetching %s with npm", spec)
		cmd := exec.CommandContext(ctx, npm, "pack", "--silent", "--ignore-scripts", spec)
		cmd.Dir = tmp
		if err := run(ctx, cmd); err != nil {
			return err
		}
		archives, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
		if err != nil {
			return err
		}
		if len(archives) != 1 {
			return fmt.Errorf("npm pack %s made %d archives, want 1", spec, len(archives))
		}
		content, err := os.ReadFile(archives[0])
		if err != nil {
			return err
		}
		sum := sha512.Sum512(content)
		if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
			return fmt.Errorf("%s has the integrity %s, want %s", spec, got, integrity)
		}
		return run(ctx, exec.CommandContext(ctx, "tar", "-xzf", archives[0], "-C", tmp))
	})
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", spec, err)
	}
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	return bytes.TrimSpace(content), err
}
