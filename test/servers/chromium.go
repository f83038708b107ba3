package servers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Browser is a Chromium that was fetched. Its processes start each other, so it runs
// with the loader of the machine, whose release it is of.
type Browser struct {
	// Path is the program, Env what it needs in its environment beside that of this
	// process.
	Path string
	Env  []string
}

// Chromium returns Debian's Chromium, which is fetched if need be: that of the
// machine's own release. Nothing is installed into the system.
func Chromium(ctx context.Context, log io.Writer) (Browser, error) {
	cache, err := cacheDir()
	if err != nil {
		return Browser{}, err
	}
	home := filepath.Join(cache, "chromium")
	root := filepath.Join(home, "root")
	err = build(ctx, root, func(tmp string) error {
		from, system, err := ownArchive()
		if err != nil {
			return err
		}
		say(log, "fetching chromium from %s %s", from.uri, system.codename)
		work := filepath.Join(home, "apt")
		if err := unpackPackages(ctx, work, tmp, from.line(system.codename), "chromium", "fonts-dejavu-core"); err != nil {
			return err
		}
		if err := dropLoader(tmp); err != nil {
			return err
		}
		return os.RemoveAll(work)
	})
	if err != nil {
		return Browser{}, err
	}
	fonts := filepath.Join(home, "fonts.conf")
	text := fmt.Sprintf("<?xml version=\"1.0\"?>\n<!DOCTYPE fontconfig SYSTEM "+
		"\"fonts.dtd\">\n<fontconfig><dir>%s</dir><cachedir>%s</cachedir></fontconfig>\n",
		filepath.Join(root, "usr", "share", "fonts"), filepath.Join(home, "fonts"))
	if err := os.WriteFile(fonts, []byte(text), 0o644); err != nil {
		return Browser{}, err
	}
	libraries := ""
	for _, pattern := range []string{"usr/lib/*-linux-gnu*", "lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/pulseaudio"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, dir := range found {
			libraries += dir + ":"
		}
	}
	return Browser{
		Path: filepath.Join(root, "usr", "lib", "chromium", "chromium"),
		Env:  []string{"LD_LIBRARY_PATH=" + libraries + os.Getenv("LD_LIBRARY_PATH"), "FONTCONFIG_FILE=" + fonts},
	}, nil
}

// dropLoader takes the C library out of an unpacked tree: one beside the loader of
// the machine that is of another build would not start.
func dropLoader(root string) error {
	for _, dir := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*"} {
		for _, name := range []string{"ld-linux*", "libc.so*", "libm.so*", "libmvec.so*", "libpthread.so*", "libdl.so*",
			"librt.so*", "libresolv.so*", "libnss_*"} {
			found, err := filepath.Glob(filepath.Join(root, dir, name))
			if err != nil {
				return err
			}
			for _, path := range found {
				if err := os.Remove(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
