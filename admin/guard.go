package admin

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"strings"
)

// Role is what a user may do. Each one includes those before it.
type Role int

// The roles.
const (
	// View is to look at everything but snapshots and profiles.
	View Role = iota + 1
	// Operate is to pause, resume, stop and restart connectors, to move the
	// leadership and to change log levels.
	Operate
	// Admin is to set positions, change members, take snapshots and profiles.
	Admin
)

// ParseRole returns the role of a name, or 0.
func ParseRole(name string) Role {
	return map[string]Role{"view": View, "operate": Operate, "admin": Admin}[name]
}

func (r Role) String() string {
	return map[Role]string{View: "view", Operate: "operate", Admin: "admin"}[r]
}

// guarded lets a request through to h when whoever asks may do so.
func (s *Server) guarded(need Role, h http.HandlerFunc) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, refusal := s.mayAsk(origins, need, r)
		if refusal != nil {
			writeProblem(w, refusal)
			return
		}
		h(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// guardedConnect does so for Kafka Connect's REST API, in its form of errors.
func (s *Server) guardedConnect(connect *ConnectAPI) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, refusal := s.mayAsk(origins, connectRole(r), r)
		if refusal != nil {
			failed(refusal.Status, refusal.Detail).write(w)
			return
		}
		connect.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// mayAsk returns who asks, and what stands against it, if anything.
func (s *Server) mayAsk(origins *http.CrossOriginProtection, need Role,
	r *http.Request) (user string, refusal *Problem) {
	user = s.user(r)
	switch {
	case origins.Check(r) != nil:
		refusal = &Problem{Status: http.StatusForbidden, Code: CodeForbidden, Detail: "a page of another site asked for this"}
	case user == "" && !s.ownName(r):
		refusal = &Problem{Status: http.StatusForbidden, Code: CodeForbidden,
			Detail: "the Host header names " + clipName(r.Host) + ", which is not this server: use its address, or localhost"}
	case user == "" && s.mustAuthenticate():
		refusal = &Problem{Status: http.StatusUnauthorized, Code: CodeUnauthorized,
			Detail: "a password or a client certificate is needed"}
	case s.role(user) < need:
		who := user
		if who == "" {
			who = "who shows neither a password nor a certificate"
		}
		refusal = &Problem{Status: http.StatusForbidden, Code: CodeForbidden,
			Detail: who + " has the role " + s.role(user).String() + ", and this needs " + need.String()}
	}
	return user, refusal
}

type userKey struct{}

// authenticated is the name that the connection or the password proves, or "".
func authenticated(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

// user is who asks, as far as it is proven: by a client certificate that was
// verified, or a password that the web configuration's handler has checked.
func (s *Server) user(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return certificateName(r.TLS.VerifiedChains[0][0])
	}
	if name, _, ok := r.BasicAuth(); ok && s.hasUsers() {
		return name
	}
	return ""
}

func certificateName(c *x509.Certificate) string {
	switch {
	case c.Subject.CommonName != "":
		return c.Subject.CommonName
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	default:
		return "certificate " + c.SerialNumber.String()
	}
}

func (s *Server) hasUsers() bool {
	return s.cfg.Auth != nil && s.cfg.Auth().Users
}

// mustAuthenticate is false when nobody can, because it was not configured.
func (s *Server) mustAuthenticate() bool {
	if s.cfg.Auth == nil {
		return false
	}
	a := s.cfg.Auth()
	return a.Users || a.Certificates
}

// role is what a user may do: without a list everybody who is let in may do all. With
// one, nobody has no more than who is not in it.
func (s *Server) role(user string) Role {
	switch role, listed := s.cfg.Roles[user]; {
	case len(s.cfg.Roles) == 0:
		return Admin
	case listed && user != "":
		return role
	default:
		return View
	}
}

// ownName is the check against DNS rebinding: a page whose own name was made to
// point here sends that name as Host. A server on loopback is asked by its address
// or as localhost; on others only browsers, which say where their page is from
// when they write, are held to that.
func (s *Server) ownName(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	listen, _, _ := net.SplitHostPort(s.cfg.Listen)
	name, _ := os.Hostname()
	if net.ParseIP(host) != nil || host == "localhost" || host == strings.ToLower(listen) ||
		host == strings.ToLower(name) {
		return true
	}
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	return !s.loopback() && !browser
}

func (s *Server) loopback() bool {
	addr, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// clipName keeps what a client says from filling a message.
func clipName(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}
