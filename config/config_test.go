package config

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var write = flag.Bool("write", false, "write the expected messages and docs/config.md anew")

// testResolver knows three secrets and no files of the machine.
func testResolver() *Resolver {
	files := map[string]string{
		"/run/secrets/token":         "t0ken\n",
		"/run/secrets/db.properties": "mysql.password=p: #x\"${y:z}\nescaped=caf\\u00e9 \xe9\n",
	}
	return &Resolver{
		LookupEnv: func(name string) (string, bool) { return "s3cret", name == "KAFKA_PASSWORD" },
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

func testFiles(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		if files[p], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestGoodFiles(t *testing.T) {
	for path, data := range testFiles(t, "*.good.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b := Builder{Resolver: testResolver()}
			if _, err := b.Build(YAML(path, data)); err != nil {
				t.Errorf("unexpected problems:\n%v", err)
			}
		})
	}
}

// TestB110BadFiles holds each file against the messages at its end: all problems
// at once, each with its line and column.
func TestB110BadFiles(t *testing.T) {
	const mark = "# want: "
	for path, data := range testFiles(t, "*.bad.yml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var body, want strings.Builder
			for line := range strings.Lines(string(data)) {
				if message, ok := strings.CutPrefix(line, mark); ok {
					want.WriteString(message)
				} else {
					body.WriteString(line)
				}
			}
			b := Builder{Resolver: testResolver()}
			_, err := b.Build(YAML(filepath.Base(path), []byte(body.String())))
			if err == nil {
				t.Fatal("no problem found")
			}
			if _, ok := errors.AsType[Problems](err); !ok {
				t.Errorf("the error is a %T", err)
			}
			got := err.Error() + "\n"
			if *write {
				text := body.String() + mark + strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", "\n"+mark) + "\n"
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("other messages (-want +got):\n%s", diff)
			}
		})
	}
}
