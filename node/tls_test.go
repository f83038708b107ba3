package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	stdpem "encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// selfSigned makes a certificate and its key, as PEM text.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, b []byte) string {
		return string(stdpem.EncodeToMemory(&stdpem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("EC PRIVATE KEY", kder)
}

// TestTLSFiles: paths and PEM text count alike, and what is wrong is told.
func TestTLSFiles(t *testing.T) {
	cert, key := selfSigned(t)
	_, otherKey := selfSigned(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := write(t, "crt", cert), write(t, "key", key)
	for name, test := range map[string]struct {
		files TLSFiles
		want  string // in the error; empty for none
	}{
		"nothing":        {TLSFiles{}, ""},
		"files":          {TLSFiles{CA: certFile, Cert: certFile, Key: keyFile}, ""},
		"text":           {TLSFiles{CA: cert, Cert: cert, Key: keyFile}, ""},
		"no certificate": {TLSFiles{CA: keyFile}, "hold no PEM certificate"},
		"missing":        {TLSFiles{CA: "/nonexistent"}, "certificate authorities: "},
		"a pipe":         {TLSFiles{CA: pipe}, "certificate authorities: it is not a regular file"},
		"a device":       {TLSFiles{Cert: certFile, Key: "/dev/zero"}, "client key: it is not a regular file"},
		"too large": {TLSFiles{Cert: write(t, "large", cert+strings.Repeat(" ", 1<<20)), Key: keyFile},
			"larger than 1MiB"},
		"half":           {TLSFiles{Cert: certFile}, "belong together"},
		"the other half": {TLSFiles{Key: keyFile}, "belong together"},
		"other key":      {TLSFiles{Cert: certFile, Key: write(t, "other", otherKey)}, "does not match"},
	} {
		c, err := test.files.Config()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err == nil && ((c.RootCAs != nil) != (test.files.CA != "") || len(c.Certificates) > 0 != (test.files.Cert != "")) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestKafkaTLS: files are read at each connection, and text that is wrong for good is
// refused before the first.
func TestKafkaTLS(t *testing.T) {
	cert, _ := selfSigned(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	load, err := kafkaTLS(&config.KafkaTLS{CA: file, ServerName: "kafka.example"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(); err == nil {
		t.Error("a file that is not there yet is read")
	}
	if err := os.WriteFile(file, []byte(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := load(); err != nil || c.RootCAs == nil || c.ServerName != "kafka.example" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, wrong := range []config.KafkaTLS{{CA: "-----BEGIN NONSENSE"}, {Cert: file}} {
		if _, err := kafkaTLS(&wrong); err == nil || !strings.Contains(err.Error(), "kafka.tls: ") {
			t.Errorf("%+v is taken: %v", wrong, err)
		}
	}
}
