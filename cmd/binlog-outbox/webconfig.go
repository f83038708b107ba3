package main

import (
	"fmt"
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
	return a, nil
}

// servesTLS reports whether a web configuration file has a certificate.
func servesTLS(file string) bool {
	var w struct {
		TLS struct {
			File string `yaml:"cert_file"`
			Text string `yaml:"cert"`
		} `yaml:"tls_server_config"`
	}
	text, err := os.ReadFile(file)
	return err == nil && yaml.Unmarshal(text, &w) == nil && w.TLS.File+w.TLS.Text != ""
}

// asksFor reads how clients of a web configuration file prove who they are. A file
// that can't be read lets nobody in by itself; both are assumed then.
func asksFor(file string) admin.Auth {
	var w struct {
		Users map[string]string `yaml:"basic_auth_users"`
		TLS   struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &w)
	}
	if err != nil {
		return admin.Auth{Users: true, Certificates: true}
	}
	return admin.Auth{Users: len(w.Users) > 0, Certificates: w.TLS.ClientAuth == "RequireAndVerifyClientCert"}
}
