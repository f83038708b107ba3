package node

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/binlog-outbox/binlog-outbox/admin"
	"github.com/binlog-outbox/binlog-outbox/config"
)

// adminConfig takes the admin server's settings from the tree.
func adminConfig(cfg *config.Config) (admin.Config, error) {
	a := admin.Config{Listen: cfg.Admin.Listen, AllowRemote: cfg.Admin.AllowRemote, WebConfig: cfg.Admin.WebConfig}
	if len(cfg.Admin.Roles) > 0 {
		a.Roles = map[string]admin.Role{}
	}
	for user, role := range cfg.Admin.Roles {
		a.Roles[user] = admin.ParseRole(role)
	}
	if a.WebConfig == "" {
		return a, nil
	}
	if err := web.Validate(a.WebConfig); err != nil {
		return a, fmt.Errorf("admin.web_config %s: %w", a.WebConfig, err)
	}
	a.Auth = func() admin.Auth { return asksFor(a.WebConfig) }
	if w, err := readWebConfig(a.WebConfig); err == nil && len(a.Roles) > 0 && len(w.Users) == 0 &&
		!w.knowsCertificates() {
		return a, config.Problems{{Path: "admin.roles", Message: "nobody could ever have one of them: " + a.WebConfig +
			" has neither basic_auth_users nor a client_auth_type that verifies certificates; add one, or leave the roles out"}}
	}
	return a, nil
}

// webConfig is what counts here of a web configuration file.
type webConfig struct {
	Users map[string]string `yaml:"basic_auth_users"`
	TLS   struct {
		File       string `yaml:"cert_file"`
		Text       string `yaml:"cert"`
		ClientAuth string `yaml:"client_auth_type"`
	} `yaml:"tls_server_config"`
}

func readWebConfig(file string) (w webConfig, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &w)
	}
	return w, err
}

// knowsCertificates reports whether who shows a client certificate is known by it.
func (w webConfig) knowsCertificates() bool {
	return w.TLS.ClientAuth == "RequireAndVerifyClientCert" || w.TLS.ClientAuth == "VerifyClientCertIfGiven"
}

func (w webConfig) servesTLS() bool { return w.TLS.File+w.TLS.Text != "" }

// warnOfPlainPasswords tells of users whose passwords anybody on the way can read.
func warnOfPlainPasswords(cfg *config.Config, log *slog.Logger) {
	w, err := readWebConfig(cfg.Admin.WebConfig)
	host, _, _ := net.SplitHostPort(cfg.Admin.Listen)
	ip := net.ParseIP(host)
	if err == nil && len(w.Users) > 0 && !w.servesTLS() && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		log.Warn("passwords of the admin interface go over the network as plain text: give admin.web_config a certificate "+
			"(tls_server_config), or listen on 127.0.0.1 behind a proxy that encrypts",
			"address", cfg.Admin.Listen)
	}
}

// ServesTLS reports whether a web configuration file has a certificate.
func ServesTLS(file string) bool {
	w, err := readWebConfig(file)
	return err == nil && w.servesTLS()
}

// asksFor reads how clients of a web configuration file prove who they are. A file
// that can't be read lets nobody in by itself; both are assumed then.
func asksFor(file string) admin.Auth {
	w, err := readWebConfig(file)
	if err != nil {
		return admin.Auth{Users: true, Certificates: true}
	}
	return admin.Auth{Users: len(w.Users) > 0, Certificates: w.TLS.ClientAuth == "RequireAndVerifyClientCert"}
}
