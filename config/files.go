package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Reach bounds what references may refer to. The zero value is nothing.
type Reach struct {
	// Paths are files, and folders with all that is below them. Links count where they
	// lead to.
	Paths []string
	// Variables are names of environment variables.
	Variables []string
}

// noReach resolves nothing.
var noReach = &Resolver{Reach: &Reach{}}

// mayLookUp says why a variable may not be referred to.
func (r *Resolver) mayLookUp(name string) error {
	if r.Reach == nil || slices.Contains(r.Reach.Variables, name) {
		return nil
	}
	return errors.New("over the REST API only the variables of admin.secret_variables may be referred to, and it is " +
		"none of them")
}

var errOutOfReach = errors.New("over the REST API only files below admin.secret_paths may be named, and it is not")

// mayRead says why a file may not be named. Of files elsewhere it does not even look
// whether they are there.
func (r *Resolver) mayRead(path string) error {
	if r.Reach == nil {
		return nil
	}
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) || !slices.ContainsFunc(r.Reach.Paths, func(p string) bool {
		return below(filepath.Clean(p),
			path)
	}) {
		return errOutOfReach
	}
	if r.ReadFile != nil {
		return nil // not the file system's
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return reason(err)
	}
	for _, p := range r.Reach.Paths {
		if p, err := filepath.EvalSymlinks(p); err == nil && below(p, real) {
			return nil
		}
	}
	return errOutOfReach
}

// below reports whether path is folder or below it; both are clean.
func below(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// maxFile bounds what is read of a file; a mistaken path must not fill the memory.
const maxFile = 1 << 20

// ReadFile reads a regular file of up to 1 MiB.
func ReadFile(path string) ([]byte, error) { return ReadFileUpTo(path, maxFile) }

// ReadFileUpTo reads a regular file of at most that many bytes. Anything else, such as a
// pipe, a device or a folder, is an error: reading it could wait, or last, for ever.
func ReadFileUpTo(path string, most Size) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && Size(len(data)) > most {
		err = fmt.Errorf("the file is larger than %s", most)
	}
	return data, err
}

// openRegular opens a file that is one. It does not wait for the other end of a pipe.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		_ = f.Close() // opened for reading only
		return nil, err
	}
	return f, nil
}

func (b *builder) certificate(path, ca, cert, key string, keyPEM Secret) {
	b.readable(join(path, "ca"), ca)
	b.readable(join(path, "cert"), cert)
	b.readable(join(path, "key"), key)
	b.require(key == "" || keyPEM.IsZero(), join(path, "key_pem"), "can't go together with key")
	hasKey := key != "" || !keyPEM.IsZero()
	b.require(cert == "" || hasKey, join(path, "cert"), "needs its private key; give key or key_pem")
	b.require(cert != "" || !hasKey, join(path, "cert"), "is required with a private key")
}

// readable holds a path against the file system; PEM text is no path.
func (b *builder) readable(path, file string) {
	if file == "" || IsPEM(file) || b.Builder.KeepReferences || b.Builder.Blind {
		return
	}
	if b.origins[path].remote {
		if err := b.remote.mayRead(file); err != nil {
			b.tell(path, err.Error())
			return
		}
	}
	f, err := openRegular(file)
	if err != nil {
		if refs := b.references(path); refs != "" {
			file = "what " + refs + " stands for"
		}
		b.tell(path, fmt.Sprintf("reading %s: %v", file, reason(err)))
		return
	}
	_ = f.Close() // opened for reading only
}

// IsPEM reports whether the value of a certificate setting is the PEM text itself
// and not a path.
func IsPEM(value string) bool { return strings.Contains(value, "-----BEGIN ") }
