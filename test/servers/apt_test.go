package servers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArchives(t *testing.T) {
	bookworm, noble := release{"debian", "bookworm"}, release{"ubuntu", "noble"}
	for _, test := range []struct {
		name   string
		system release
		files  map[string]string
		line   string // of the suite "sid"; empty when no archive is to be found
	}{
		{"stanzas", bookworm, map[string]string{"sources.list.d/debian.sources": `Types: deb deb-src
# http://snapshot.example.org/archive
URIs: http://deb.example.org/debian-security
Suites: bookworm-security
Components: main
Signed-By: /k.gpg

Types: deb
URIs: http://deb.example.org/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /k.gpg
`}, "deb [signed-by=/k.gpg] http://deb.example.org/debian sid main contrib\n"},
		{"a key within a stanza", bookworm, map[string]string{"sources.list.d/a.sources": `Types: deb
URIs: http://deb.example.org/debian
Suites:
 bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
`}, "deb http://deb.example.org/debian sid main\n"},
		{"lines", bookworm, map[string]string{"sources.list": `
# deb http://off.example.org/debian bookworm main
deb-src http://src.example.org/debian bookworm main
deb http://security.example.org/debian-security bookworm-security main
deb [ arch=amd64 signed-by=/k.gpg ] mirror+file:/etc/apt/mirror bookworm main non-free # ours
`}, "deb [signed-by=/k.gpg] mirror+file:/etc/apt/mirror sid main non-free\n"},
		{"a stanza that is off", bookworm, map[string]string{"sources.list.d/a.sources": `Enabled: no
Types: deb
URIs: http://off.example.org/debian
Suites: bookworm
Components: main
`}, ""},
		{"another release's archive, by its name", release{"debian", ""}, map[string]string{
			"sources.list": "deb http://a.example.org/debian/ unstable main\n",
		}, "deb http://a.example.org/debian/ sid main\n"},
		{"somebody else's packages", bookworm, map[string]string{
			"sources.list.d/node.list": "deb https://node.example.org/node_20.x nodistro main\n",
		}, ""},
		{"ubuntu", noble, map[string]string{
			"sources.list": "deb http://a.example.org/ubuntu noble main universe\n",
		}, "deb http://a.example.org/ubuntu sid main universe\n"},
		{"no sources", bookworm, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			etc := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(etc, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			all, err := readArchives(etc)
			if err != nil {
				t.Fatal(err)
			}
			line := ""
			if a, found := mainArchive(all, test.system); found {
				line = a.line("sid")
			}
			if diff := cmp.Diff(test.line, line); diff != "" {
				t.Error(diff)
			}
		})
	}
}
