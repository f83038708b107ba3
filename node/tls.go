package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// TLSFiles say how a client proves who it is, and whom it believes. Each is the path of a
// PEM file, or the PEM text itself, or empty.
type TLSFiles struct {
	CA, Cert, Key string
	// KeyPEM takes the place of Key when it is set.
	KeyPEM config.Secret
}

// pem returns the text itself, or what the file holds.
func pem(s string) ([]byte, error) {
	if config.IsPEM(s) {
		return []byte(s), nil
	}
	return config.ReadFile(s)
}

// Config reads the files anew, so that it follows what replaces them. Without a CA the
// system's count.
func (f TLSFiles) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		b, err := pem(f.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, errors.New("the certificate authorities hold no PEM certificate")
		}
	}
	if f.Cert == "" && f.Key == "" && f.KeyPEM.IsZero() {
		return c, nil
	}
	if err := f.complete(); err != nil {
		return nil, err
	}
	cert, err := pem(f.Cert)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	key, err := f.key()
	if err != nil {
		return nil, fmt.Errorf("reading the client key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// complete refuses half a certificate.
func (f TLSFiles) complete() error {
	if (f.Cert == "") != (f.Key == "" && f.KeyPEM.IsZero()) {
		return errors.New("client certificate and key belong together")
	}
	return nil
}

func (f TLSFiles) key() ([]byte, error) {
	if f.KeyPEM.IsZero() {
		return pem(f.Key)
	}
	text, err := f.KeyPEM.Resolve()
	return []byte(text), err
}

// sourceTLS follows MySQL's ssl modes: preferred and required encrypt without
// checking, verify_ca checks the chain, verify_identity the name too.
func sourceTLS(s *config.Source) (*tls.Config, error) {
	if s.TLS.Mode == config.SSLDisabled {
		return nil, nil
	}
	c, err := TLSFiles{s.TLS.CA, s.TLS.Cert, s.TLS.Key, s.TLS.KeyPEM}.Config()
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

// kafkaTLS returns what is asked at each connection. PEM text that is no certificate is
// refused at once, files are waited for.
func kafkaTLS(t *config.KafkaTLS) (func() (*tls.Config, error), error) {
	files := TLSFiles{t.CA, t.Cert, t.Key, t.KeyPEM}
	load := func() (*tls.Config, error) {
		c, err := files.Config()
		if err != nil {
			return nil, fmt.Errorf("kafka.tls: %w", err)
		}
		c.ServerName, c.InsecureSkipVerify = t.ServerName, t.InsecureSkipVerify
		return c, nil
	}
	if err := files.complete(); err != nil {
		return nil, fmt.Errorf("kafka.tls: %w", err)
	}
	if config.IsPEM(t.CA) || config.IsPEM(t.Cert) || !t.KeyPEM.IsZero() {
		if _, err := load(); err != nil {
			return nil, err
		}
	}
	return load, nil
}
