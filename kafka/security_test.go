package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/binlog-outbox/binlog-outbox/kafka"
	"github.com/binlog-outbox/binlog-outbox/kafka/kafkatest"
)

// authority issues certificates into files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a.key = key
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.write("ca.crt", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes name.crt and name.key for the given host and returns their paths.
func (a *authority) issue(name, host string) (cert, key string) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", kder)
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *authority) server(host string, clientCAs *x509.CertPool) *tls.Config {
	a.t.Helper()
	crt, key := a.issue("server", host)
	pair, err := tls.LoadX509KeyPair(crt, key)
	if err != nil {
		a.t.Fatal(err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}}
	if clientCAs != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, clientCAs
	}
	return cfg
}

func TestTLS(t *testing.T) {
	ca, other := newAuthority(t, "ours"), newAuthority(t, "other")
	client, err := tls.LoadX509KeyPair(ca.issue("client", "client"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		server *tls.Config
		client *tls.Config // nil for an error
		ok     bool
	}{
		{"trusted", ca.server("127.0.0.1", nil), &tls.Config{RootCAs: ca.pool()}, true},
		{"client certificate", ca.server("127.0.0.1", ca.pool()), &tls.Config{RootCAs: ca.pool(),
			Certificates: []tls.Certificate{client}}, true},
		{"no client certificate", ca.server("127.0.0.1", ca.pool()), &tls.Config{RootCAs: ca.pool()}, false},
		{"other host name", ca.server("kafka.example", nil), &tls.Config{RootCAs: ca.pool()}, false},
		{"other host name, expected", ca.server("kafka.example", nil), &tls.Config{RootCAs: ca.pool(),
			ServerName: "kafka.example"}, true},
		{"other authority", ca.server("127.0.0.1", nil), &tls.Config{RootCAs: other.pool()}, false},
		{"other authority, not looked at", ca.server("127.0.0.1", nil), &tls.Config{RootCAs: other.pool(),
			InsecureSkipVerify: true}, true},
		{"missing file", ca.server("127.0.0.1", nil), nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := kafkatest.Start(t, kfake.TLS(c.server), kfake.SeedTopics(1, "orders"))
			cfg := config(cl.Brokers())
			cfg.TLS = func() (*tls.Config, error) {
				if c.client == nil {
					return nil, fs.ErrNotExist
				}
				return c.client, nil
			}
			s := publisher(t, cfg).AtLeastOnce()
			_, _, err := s.Open(t.Context())
			defer closeSink(t, s)
			if !c.ok {
				if c.name != "no client certificate" { // which the broker refuses later
					wantError(t, err, kafka.TLSFailed, true)
				} else if err == nil {
					t.Error("it is let in")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			commit(t, s, newBatcher("orders").next(2, 2))
		})
	}
}

func TestB081CertificatesAreAskedForAgain(t *testing.T) {
	ca, other := newAuthority(t, "ours"), newAuthority(t, "other")
	c := kafkatest.Start(t, kfake.TLS(ca.server("127.0.0.1", nil)), kfake.SeedTopics(1, "orders"))
	cfg := config(c.Brokers())
	var trusted atomic.Pointer[x509.CertPool]
	trusted.Store(other.pool())
	cfg.TLS = func() (*tls.Config, error) { return &tls.Config{RootCAs: trusted.Load()}, nil }
	pub := publisher(t, cfg)
	s := pub.AtLeastOnce()
	_, _, err := s.Open(t.Context())
	wantError(t, err, kafka.TLSFailed, true)
	closeSink(t, s)
	trusted.Store(ca.pool())
	commit(t, open(t, pub.AtLeastOnce()), newBatcher("orders").next(1, 1))
}

func TestSASL(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			c := kafkatest.Start(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "outbox", "right"),
				kfake.SeedTopics(1, "orders"))
			cfg := config(c.Brokers())
			password := "wrong-secret"
			cfg.SASL = &kafka.SASL{Mechanism: mechanism, Credentials: func(
				context.Context,
			) (string, string, error) {
				return "outbox", password, nil
			}}
			pub := publisher(t, cfg)
			s := pub.AtLeastOnce()
			_, _, err := s.Open(t.Context())
			wantError(t, err, kafka.AuthFailed, true)
			if strings.Contains(err.Error(), password) {
				t.Errorf("the password is in the error: %v", err)
			}
			closeSink(t, s)
			password = "right" // B081: the next session reads it anew
			commit(t, open(t, pub.AtLeastOnce()), newBatcher("orders").next(2, 2))
		})
	}
}

func TestB081ChangedPasswordIsUsedAtTheNextConnect(t *testing.T) {
	c := kafkatest.Start(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "outbox", "old"),
		kfake.SeedTopics(1, "orders"))
	cfg := config(c.Brokers())
	var password atomic.Value
	password.Store("old")
	cfg.SASL = &kafka.SASL{Mechanism: "SCRAM-SHA-256", Credentials: func(
		context.Context,
	) (string, string, error) {
		return "outbox", password.Load().(string), nil
	}}
	s := open(t, publisher(t, cfg).AtLeastOnce())
	b := newBatcher("orders")
	commit(t, s, b.next(1, 1))

	changePassword(t, c, "outbox", "old", "new")
	password.Store("new")
	dials := c.Network.Dials()
	c.DropProduce(1)
	commit(t, s, b.next(1, 1)) // the same session goes on
	if c.Network.Dials() == dials {
		t.Error("no new connection was made")
	}
}

func changePassword(t *testing.T, c *kafkatest.Cluster, user, old, password string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.SASL(scram.Auth{User: user,
		Pass: old}.AsSha256Mechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	salt := []byte("0123456789abcdef")
	salted := saltedPassword(t, password, salt)
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	up := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	up.Name, up.Mechanism, up.Iterations, up.Salt, up.SaltedPassword = user, 1, 4096, salt, salted
	req.Upsertions = append(req.Upsertions, up)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil || resp.Results[0].ErrorCode != 0 {
		t.Fatalf("changing the password: %v, %+v", err, resp)
	}
}

func TestOAuthTokenSources(t *testing.T) {
	var asked atomic.Int32
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		id, secret, _ := r.BasicAuth()
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "kafka write" || id != "client" ||
			secret != "s%26cret" {
			http.Error(w, "the secret is s&cret", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"from-endpoint","token_type":"Bearer","expires_in":300}`))
	}))
	defer endpoint.Close()
	for _, c := range []struct {
		name, want string
		sasl       kafka.SASL
	}{
		{"function", "from-function", kafka.SASL{OAuth: kafka.OAuth{Token: func(
			context.Context,
		) (string, error) {
			return "from-function", nil
		}}}},
		{"endpoint", "from-endpoint", kafka.SASL{Credentials: user("client", "s&cret"),
			OAuth: kafka.OAuth{Endpoint: endpoint.URL, Scopes: []string{"kafka", "write"}, Client: endpoint.Client()}}},
		{"refused", "", kafka.SASL{Credentials: user("client", "wrong"), OAuth: kafka.OAuth{Endpoint: endpoint.URL,
			Client: endpoint.Client()}}},
		{"failing", "", kafka.SASL{OAuth: kafka.OAuth{Token: func(context.Context) (string, error) {
			return "",
				errors.New("down")
		}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := kafkatest.Start(t)
			token := cl.AcceptOAuth("from-function", "from-endpoint")
			cfg := config(cl.Brokers())
			c.sasl.Mechanism = "OAUTHBEARER"
			cfg.SASL = &c.sasl
			s := publisher(t, cfg).AtLeastOnce()
			_, _, err := s.Open(t.Context())
			defer closeSink(t, s)
			if c.want == "" {
				wantError(t, err, kafka.AuthFailed, true)
				if strings.Contains(err.Error(), "cret") {
					t.Errorf("a secret is in the error: %v", err)
				}
				return
			}
			if err != nil || token() != c.want {
				t.Errorf("Open = %v with token %q, want %q", err, token(), c.want)
			}
		})
	}
}

func saltedPassword(t *testing.T, password string, salt []byte) []byte {
	t.Helper()
	key, err := pbkdf2.Key(sha256.New, password, salt, 4096, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
