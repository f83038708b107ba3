package kafkatest

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AcceptOAuth makes the cluster answer OAUTHBEARER logins, which kfake itself does
// not know: the given tokens are accepted, all others refused. last returns the
// token that was accepted last. Connections without a login stay allowed.
func (c *Cluster) AcceptOAuth(tokens ...string) (last func() string) {
	var accepted atomic.Pointer[string]
	c.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{"OAUTHBEARER"}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		_, rest, _ := bytes.Cut(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, []byte("auth=Bearer "))
		token, _, _ := bytes.Cut(rest, []byte("\x01"))
		if !slices.Contains(tokens, string(token)) {
			resp.ErrorCode = 58 // SASL_AUTHENTICATION_FAILED
			return resp, nil, true
		}
		s := string(token)
		accepted.Store(&s)
		return resp, nil, true
	})
	return func() string {
		if s := accepted.Load(); s != nil {
			return *s
		}
		return ""
	}
}
