package servers

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Promtool returns a command of promtool, Prometheus's checker of rules, which is
// fetched if need be: that of the machine's own release.
func Promtool(ctx context.Context, log io.Writer, args ...string) (*exec.Cmd, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(cache, "prometheus")
	root := filepath.Join(home, "root")
	err = build(ctx, root, func(tmp string) error {
		from, system, err := ownArchive()
		if err != nil {
			return err
		}
		say(log, "fetching prometheus from %s %s", from.uri, system.codename)
		work := filepath.Join(home, "apt")
		if err := unpackPackages(ctx, work, tmp, from.line(system.codename), "prometheus"); err != nil {
			return err
		}
		return os.RemoveAll(work)
	})
	if err != nil {
		return nil, err
	}
	l, err := findLoader(root)
	if err != nil {
		return nil, err
	}
	args = append([]string{"--library-path", l.libraries, filepath.Join(root, "usr", "bin", "promtool")}, args...)
	return exec.CommandContext(ctx, l.path, args...), nil
}
