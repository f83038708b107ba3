package admin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOtherSites: neither a page of another site nor one whose name was made to
// point here gets anything done or told.
func TestOtherSites(t *testing.T) {
	f := &fakeControl{}
	ask := serveControl(t, &fakeNode{}, f)
	const write, read = "/v1/connectors/orders/pause", "/v1/status"
	for name, c := range map[string]struct {
		method, path string
		header       []string
		want         int
	}{
		"curl":    {"PUT", write, nil, 202},
		"by name": {"PUT", write, []string{"Host", "localhost:8083"}, 202},
		"own page": {"PUT", write, []string{"Host", "localhost:8083", "Origin", "http://localhost:8083",
			"Sec-Fetch-Site", "same-origin"}, 202},
		"another site":                {"PUT", write, []string{"Origin", "https://evil.example"}, 403},
		"another site, a new browser": {"PUT", write, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a name that points here": {"PUT", write, []string{"Host", "evil.example:8083", "Origin",
			"http://evil.example:8083"}, 403},
		"reads of it":                  {"GET", read, []string{"Host", "evil.example:8083"}, 403},
		"profiles of it":               {"GET", "/debug/pprof/heap", []string{"Host", "evil.example:8083"}, 403},
		"a link from another site":     {"GET", read, []string{"Sec-Fetch-Site", "cross-site"}, 200},
		"probes by any name":           {"GET", "/livez", []string{"Host", "node.example"}, 200},
		"reads by address and no port": {"GET", read, []string{"Host", "[::1]"}, 200},
	} {
		body := ""
		if c.method == "PUT" {
			body = why
		}
		if a := ask(c.method, c.path, body, c.header...); a.code != c.want {
			t.Errorf("%s: %d %s, want %d", name, a.code, a.body, c.want)
		}
	}
	if len(f.asked) != 3 {
		t.Errorf("carried out: %v", f.asked)
	}
}

// fakepassword
const hash = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

func webFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUsersAndRoles(t *testing.T) {
	f := &fakeControl{}
	users := "basic_auth_users:\n"
	for _, u := range []string{"vera", "otto", "ann", "new"} {
		users += "  " + u + ": " + hash + "\n"
	}
	base := serveBoth(t, Config{
		Listen: "127.0.0.1:0", WebConfig: webFile(t, users), Auth: func() Auth { return Auth{Users: true} },
		Roles: map[string]Role{"vera": View, "otto": Operate, "ann": Admin},
	}, &fakeNode{}, f)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(user, password, method, path string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(why))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Host = "cdc-1.example.internal" // any name will do for who has a password
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	const look, pause, reset, profile = "GET /v1/status", "PUT /v1/connectors/orders/pause",
		"DELETE /v1/connectors/orders/offset", "GET /debug/pprof/heap"
	for user, want := range map[string][4]int{
		"vera": {200, 403, 403, 403}, "otto": {200, 202, 403, 403}, "ann": {200, 202, 200, 200},
		"new": {200, 403, 403, 403}, "": {401, 401, 401, 401},
	} {
		for i, route := range []string{look, pause, reset, profile} {
			method, path, _ := strings.Cut(route, " ")
			if got := do(user, "fakepassword", method, path); got != want[i] {
				t.Errorf("%q: %s: %d, want %d", user, route, got, want[i])
			}
		}
	}
	if got := do("ann", "wrong", "GET", "/v1/status"); got != 401 {
		t.Errorf("a wrong password: %d", got)
	}
	if do("ann", "fakepassword", "PUT", "/v1/connectors/orders/pause"); f.last.By != "ann" {
		t.Errorf("the audit list names %q", f.last.By)
	}
}

// TestClientCertificates: TLS from the web configuration; a certificate that it
// asks for is a user.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, caKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", ca, caKey)
	certificate(t, dir, "ann", ca, caKey)
	certificate(t, dir, "bob", ca, caKey)
	file := webFile(t, fmt.Sprintf("tls_server_config: {cert_file: %[1]s/server.crt, key_file: %[1]s/server.key, "+
		"client_auth_type: RequireAndVerifyClientCert, client_ca_file: %[1]s/ca.crt}\n", dir))
	f := &fakeControl{}
	base := serveBoth(t, Config{
		Listen: "127.0.0.1:0", WebConfig: file, Auth: func() Auth { return Auth{Certificates: true} },
		Roles: map[string]Role{"ann": Admin},
	}, &fakeNode{}, f)
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	do := func(name, method, path string) (int, error) {
		c := &tls.Config{RootCAs: pool}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: c}}
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), method, strings.Replace(base, "http:", "https:", 1)+path,
			strings.NewReader(why))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	const write = "/v1/connectors/orders/pause"
	if code, err := do("ann", "PUT", write); err != nil || code != 202 || f.last.By != "ann" {
		t.Errorf("ann: %d, %v, %+v", code, err, f.last)
	}
	if code, err := do("bob", "PUT", write); err != nil || code != 403 {
		t.Errorf("bob: %d, %v", code, err)
	}
	if code, err := do("", "GET", "/v1/status"); err == nil {
		t.Errorf("without a certificate: %d", code)
	}
}

// certificate writes name.crt and name.key; without a parent it is an authority.
func certificate(t *testing.T, dir, name string, parent *x509.Certificate,
	parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: parent == nil,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der},
		".key": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c, key
}
