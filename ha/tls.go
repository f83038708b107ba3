package ha

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
)

// peerTLS proves to peers who this node is, and checks who they are: signed by
// the authority and named as a member. An authority may sign more than
// the nodes of one cluster, and each of those could rewrite positions.
type peerTLS struct {
	files TLS
	pool  *x509.CertPool
	dir   *directory
	log   *slog.Logger

	mu        sync.Mutex
	pair      *tls.Certificate
	cert, key os.FileInfo // as they were when pair was read
	said      string      // why it is not the newest
}

// newPeerTLS returns nil when the configuration asks for plain TCP.
func newPeerTLS(c Config, dir *directory, log *slog.Logger) (*peerTLS, error) {
	if c.TLS == nil {
		return nil, nil
	}
	pem, err := os.ReadFile(c.TLS.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the peers' certificate authority: %w", err)
	}
	t := &peerTLS{files: *c.TLS, pool: x509.NewCertPool(), dir: dir, log: log}
	if !t.pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the peers' certificate authority: %s holds no certificate", c.TLS.CAFile)
	}
	if _, err := t.own(); err != nil { // now rather than at the first connection
		return nil, err
	}
	return t, nil
}

// own is this node's certificate, read again when one of its files has changed. While they
// can't be read or do not belong together, as in the midst of a renewal, the last good one
// serves.
func (t *peerTLS) own() (*tls.Certificate, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cert, _ := os.Stat(t.files.CertFile) // reading it says what is wrong
	key, _ := os.Stat(t.files.KeyFile)
	if sameFile(cert, t.cert) && sameFile(key, t.key) {
		return t.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(t.files.CertFile, t.files.KeyFile)
	switch {
	case err != nil && t.pair == nil:
		return nil, fmt.Errorf("loading this node's certificate: %w", err)
	case err != nil:
		if t.said != err.Error() {
			t.said = err.Error()
			t.log.Warn("the new certificate of this node can't be loaded, the one before goes on", "error", err, "valid_until",
				t.pair.Leaf.NotAfter)
		}
		return t.pair, nil
	case t.pair != nil:
		t.log.Info("this node has a new certificate", "valid_until", pair.Leaf.NotAfter)
	}
	t.pair, t.cert, t.key, t.said = &pair, cert, key, ""
	return t.pair, nil
}

// sameFile reports whether nothing was written since a file was looked at.
func sameFile(now, before os.FileInfo) bool {
	return now != nil && before != nil && os.SameFile(now, before) && now.ModTime().Equal(before.ModTime()) &&
		now.Size() == before.Size()
}

func (t *peerTLS) accept(ctx context.Context, raw net.Conn) (net.Conn, error) {
	conn := tls.Server(raw, &tls.Config{
		MinVersion:     tls.VersionTLS13,
		ClientAuth:     tls.RequireAndVerifyClientCert,
		ClientCAs:      t.pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.own() },
		// Sessions resumed would skip reading the renewed certificates.
		SessionTicketsDisabled: true,
		VerifyConnection:       t.authorise,
	})
	return conn, conn.HandshakeContext(ctx)
}

// authorise lets in who has the name of a member.
func (t *peerTLS) authorise(s tls.ConnectionState) error {
	leaf := s.PeerCertificates[0]
	for _, name := range t.dir.certNames() {
		if leaf.VerifyHostname(name) == nil {
			return nil
		}
	}
	return fmt.Errorf("certificate of %q for %v, %v is signed by our authority but names no member of this cluster",
		leaf.Subject.CommonName, leaf.DNSNames, leaf.IPAddresses)
}

// dial proves that the node at addr is the one that is known to be there.
func (t *peerTLS) dial(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	name := t.dir.certName(addr)
	if name == "" {
		return nil, fmt.Errorf("%q is not host:port", addr)
	}
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    t.pool,
		ServerName: name,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.own()
		},
	})
	return conn, conn.HandshakeContext(ctx)
}
