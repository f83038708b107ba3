package node

import (
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/config"
)

// What TLS does not keep off is told, unless nobody can be between.
func TestTLSCheck(t *testing.T) {
	for _, c := range []struct {
		mode  config.SSLMode
		host  string
		want  CheckStatus
		words string
	}{
		{config.SSLPreferred, "db.example.com", CheckWarning, "go without TLS"},
		{config.SSLDisabled, "10.0.0.1", CheckWarning, "reads and changes"},
		{config.SSLRequired, "db.example.com", CheckWarning, "pass for the server"},
		{config.SSLVerifyCA, "db.example.com", CheckOK, "verify_ca"},
		{config.SSLVerifyIdentity, "db.example.com", CheckOK, "verify_identity"},
		{config.SSLPreferred, "127.0.0.1", CheckOK, "preferred"},
		{config.SSLDisabled, "localhost", CheckOK, "disabled"},
	} {
		got := tlsCheck(c.mode, c.host)
		if got.Status != c.want || !strings.Contains(got.Detail, c.words) || (got.Fix == "") != (c.want == CheckOK) {
			t.Errorf("%s to %s: %+v", c.mode, c.host, got)
		}
	}
}
