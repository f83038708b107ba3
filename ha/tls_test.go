package ha

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// A certificate is read when its files have changed, and not at each handshake; while they
// are no pair, as between two writes of a renewal, the last good one serves, which is said
// once.
func TestCertificatesAreRenewed(t *testing.T) {
	ca := newAuthority(t)
	first, _ := ca.issue(t, "a", []string{"a.nodes.test"})
	files := ca.files("a")
	var log bytes.Buffer
	said := func(text string) int { return strings.Count(log.String(), text) }
	p, err := newPeerTLS(Config{TLS: files}, &directory{}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	own := func() string {
		t.Helper()
		c, err := p.own()
		must(t, err)
		return c.Leaf.SerialNumber.String()
	}
	before := p.pair
	if own() != first.SerialNumber.String() || p.pair != before {
		t.Error("read again though nothing has changed")
	}
	key, err := os.ReadFile(files.KeyFile)
	must(t, err)
	second, _ := ca.issue(t, "a", []string{"a.nodes.test"})
	newKey, err := os.ReadFile(files.KeyFile)
	must(t, err)
	must(t, os.WriteFile(files.KeyFile, key, 0o600)) // the certificate was written first
	for range 3 {
		if own() != first.SerialNumber.String() {
			t.Error("a certificate without its key serves")
		}
	}
	must(t, os.Remove(files.KeyFile))
	for range 3 {
		if own() != first.SerialNumber.String() {
			t.Error("a certificate without its key serves")
		}
	}
	if said("can't be loaded") != 2 { // no pair, no file
		t.Errorf("said\n%s", &log)
	}
	must(t, os.WriteFile(files.KeyFile, newKey, 0o600))
	if own() != second.SerialNumber.String() || said("has a new certificate") != 1 {
		t.Errorf("the new one does not serve; said\n%s", &log)
	}
	// Other files of the same time, as configuration management writes them.
	at := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(files.CertFile, at, at))
	must(t, os.Chtimes(files.KeyFile, at, at))
	own()
	must(t, os.Rename(files.CertFile, files.CertFile+".old"))
	must(t, os.Rename(files.KeyFile, files.KeyFile+".old"))
	third, _ := ca.issue(t, "a", []string{"a.nodes.test"})
	must(t, os.Chtimes(files.CertFile, at, at))
	must(t, os.Chtimes(files.KeyFile, at, at))
	if own() != third.SerialNumber.String() {
		t.Error("files with the times of those before are not read")
	}
	if _, err := newPeerTLS(Config{TLS: &TLS{CertFile: "none", KeyFile: "none", CAFile: files.CAFile}}, &directory{},
		slog.Default()); err == nil {
		t.Error("a node begins without a certificate")
	}
}
