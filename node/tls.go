package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// tlsFiles are paths of PEM files, or PEM text where that is allowed.
type tlsFiles struct {
	ca, cert, key string
	keyPEM        config.Secret
}

// pem returns the text itself, or what the file holds.
func pem(s string) ([]byte, error) {
	if config.IsPEM(s) {
		return []byte(s), nil
	}
	return config.ReadFile(s)
}

// tlsConfig reads the files anew, so that it follows what replaces them.
func tlsConfig(f tlsFiles) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		b, err := pem(f.ca)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, errors.New("the certificate authorities hold no PEM certificate")
		}
	}
	if f.cert == "" {
		return c, nil
	}
	cert, err := pem(f.cert)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	var key []byte
	if !f.keyPEM.IsZero() {
		text, err := f.keyPEM.Resolve()
		if err != nil {
			return nil, fmt.Errorf("reading the client key: %w", err)
		}
		key = []byte(text)
	} else if key, err = pem(f.key); err != nil {
		return nil, fmt.Errorf("reading the client key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// sourceTLS follows MySQL's ssl modes: preferred and required encrypt without
// checking, verify_ca checks the chain, verify_identity the name too.
func sourceTLS(s *config.Source) (*tls.Config, error) {
	if s.TLS.Mode == config.SSLDisabled {
		return nil, nil
	}
	c, err := tlsConfig(tlsFiles{ca: s.TLS.CA, cert: s.TLS.Cert, key: s.TLS.Key, keyPEM: s.TLS.KeyPEM})
	if err != nil {
		return nil, fmt.Errorf("source.tls: %w", err)
	}
	c.ServerName = s.TLS.ServerName
	if c.ServerName == "" {
		c.ServerName = s.Host
	}
	switch s.TLS.Mode {
	case config.SSLPreferred, config.SSLRequired:
		c.InsecureSkipVerify = true
	case config.SSLVerifyCA:
		c.InsecureSkipVerify = true // the name is not checked; the chain is, here:
		roots := c.RootCAs
		c.VerifyConnection = func(cs tls.ConnectionState) error {
			inter := x509.NewCertPool()
			for _, ic := range cs.PeerCertificates[1:] {
				inter.AddCert(ic)
			}
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: inter})
			return err
		}
	}
	return c, nil
}
