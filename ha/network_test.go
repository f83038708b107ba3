package ha

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// authority signs certificates for tests.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", nil)
	return a
}

func (a *authority) issue(t testing.TB, file string, names []string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: file},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, name)
		}
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = tmpl, key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(ext, kind string, b []byte) {
		data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
		if err := os.WriteFile(filepath.Join(a.dir, file+ext), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".crt", "CERTIFICATE", der)
	write(".key", "PRIVATE KEY", keyDER)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) files(name string) *TLS {
	return &TLS{
		CertFile: filepath.Join(a.dir, name+".crt"), KeyFile: filepath.Join(a.dir, name+".key"),
		CAFile: filepath.Join(a.dir, "ca.crt"),
	}
}

// askOn asks over a connection of its own, and returns the whole answer.
func askOn(conn net.Conn, from preamble, path string, in any) (string, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("%sPOST %s HTTP/1.0\r\nContent-Length: %d\r\n\r\n", from.encode(), path, len(body))
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, head+string(body)); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// TestStrangersAreRefused: who is signed by the same authority but is not in the
// list of peers must not speak raft (and neither who has no certificate).
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	configs := clusterOf(t, 3, ca)
	n := start(t, configs[0])
	addr := configs[0].Peers[0].Addr
	ca.issue(t, "stranger", []string{"payroll.test"})
	evil := newAuthority(t)
	evil.issue(t, "b", []string{"b.nodes.test"})
	client := func(cert *TLS) *tls.Config {
		conf := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
		if cert != nil {
			pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{pair}
		}
		return conf
	}
	tests := []struct {
		name   string
		conf   *tls.Config
		welcom bool
	}{
		{"a peer", client(configs[1].TLS), true},
		{"signed, not listed", client(ca.files("stranger")), false},
		{"listed name, other authority", client(evil.files("b")), false},
		{"no certificate", client(nil), false},
		{"plain TCP", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			must(t, err)
			defer conn.Close()
			if tt.conf != nil {
				conn = tls.Client(conn, tt.conf)
			}
			answer, err := askOn(conn, preamble{kind: kindRequest}, pathHello, &hello{Name: "b"})
			if welcome := strings.Contains(answer, `"name":"a"`); welcome != tt.welcom {
				t.Errorf("answered: %t (%v), want %t", welcome, err, tt.welcom)
			}
		})
	}
	t.Run("another node behind a peer's address", func(t *testing.T) {
		ln, err := tls.Listen("tcp", "127.0.0.1:0", client(ca.files("stranger")))
		must(t, err)
		defer ln.Close()
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, c) // drives the handshake
				_ = c.Close()
			}
		}()
		n.mux.creds.dir = &directory{static: []Peer{{ID: "x", Addr: ln.Addr().String(), CertName: "b.nodes.test"}}}
		if _, err := n.mux.dial(testContext(t), ln.Addr().String(), kindRaft); err == nil {
			t.Error("dialed a node whose certificate has another name")
		}
	})
}

// TestOtherClusterIsRefused: raft connections between two clusters end at once.
func TestOtherClusterIsRefused(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	n := start(t, configs[0])
	n.fsm.mu.Lock()
	n.fsm.img.Cluster = "ours"
	n.fsm.mu.Unlock()
	self := n.dir.id.raftID()
	for _, tt := range []struct {
		cluster string
		target  raft.ServerID
		want    bool
	}{
		{"ours", self, true}, {"", self, true}, {"theirs", self, false},
		{"ours", "a/the-one-before-its-disk-was-lost", false}, {"ours", "", false},
	} {
		conn, err := net.Dial("tcp", configs[0].Peers[0].Addr)
		must(t, err)
		_, err = conn.Write(preamble{kindRaft, tt.cluster, tt.target, "b/x"}.encode())
		must(t, err)
		patience := 20 * time.Second
		if tt.want {
			patience = 300 * time.Millisecond // nothing is to come
		}
		must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err = conn.Read(make([]byte, 1))
		var timeout net.Error
		if open := errors.As(err, &timeout) && timeout.Timeout(); open != tt.want {
			t.Errorf("cluster %q, looking for %q: kept open %t (%v), want %t", tt.cluster, tt.target, open, err, tt.want)
		}
		must(t, conn.Close())
	}
}

// TestHandshakeSurvivesGarbage throws bytes at the listener.
func TestHandshakeSurvivesGarbage(t *testing.T) {
	t.Parallel()
	configs := clusterOf(t, 3, nil)
	n := start(t, configs[0])
	for _, data := range []string{"", "R", "R\xff", "GET / HTTP/1.1\r\n\r\n", "Q\x00\x00\x00\xff\xff\xff\xff",
		"Q\x00\x00\x00POST /ha/hello HTTP/1.0\r\n\r\n", "Q\x00\x00\x00POST /ha/join HTTP/1.0\r\nContent-Length: 2\r\n\r\n}}",
		"R\x00\x00\x00\xff\xff\xff\xff\xff"} {
		conn, err := net.Dial("tcp", configs[0].Peers[0].Addr)
		must(t, err)
		_, err = io.WriteString(conn, data)
		must(t, err)
		must(t, conn.Close())
	}
	h, err := n.hail(testContext(t), configs[0].Peers[0].Addr)
	if err != nil || h.Name != "a" {
		t.Errorf("after garbage: %+v %v", h, err)
	}
	bad := &command{Op: opLead, Node: "x"}
	data, err := bad.encode()
	must(t, err)
	for name, req := range map[string][]byte{"leadership": data, "nonsense": []byte("nonsense"),
		"newer": sealed(9, `{"op":"x"}`)} {
		if err := n.applyForPeer(testContext(t), req); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s from a peer: %v", name, err)
		}
	}
}

func TestAddressesFollowTheConfiguration(t *testing.T) {
	a := &directory{static: []Peer{{ID: "a", Addr: "new:1"}}}
	if got, err := a.ServerAddr("a/some-uuid"); err != nil || got != "a/some-uuid@new:1" {
		t.Errorf("B093: %q %v", got, err)
	}
	if _, err := a.ServerAddr(raft.ServerID("b/x")); err == nil {
		t.Error("an address for a node that nobody knows")
	}
}

func TestWireErrors(t *testing.T) {
	for _, err := range []error{ErrNotLeader, ErrNoLeader, ErrBusy, ErrInvalid} {
		if got := error(toWire(fmt.Errorf("x: %w", err))); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	var unknown *UnknownOutcomeError
	for _, err := range []error{errors.New("anything"), &UnknownOutcomeError{"x", errors.New("y")}} {
		if got := error(toWire(err)); !errors.As(got, &unknown) {
			t.Errorf("%v became %v", err, got)
		}
	}
}
