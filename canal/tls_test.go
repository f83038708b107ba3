package canal_test

import (
	"crypto/tls"
	"strings"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/canal"
)

// The server may offer TLS (MySQL here makes its own certificate) or not (MariaDB
// here): optional TLS reads from both, demanded TLS only from the first.
func TestRealTLSOptionalAndDemanded(t *testing.T) {
	flavors(t, func(t *testing.T, db *database) {
		cfg := db.cfg
		cfg.TLS = &tls.Config{InsecureSkipVerify: true}
		cfg.TLSOptional = true
		at, err := canal.CurrentPosition(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		s, err := canal.Open(t.Context(), cfg, at)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		db.exec("INSERT INTO outbox (aggregateid) VALUES ('1')")
		for rows := 0; rows == 0; {
			txs, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, tx := range txs {
				rows += len(tx.Rows)
			}
		}
		cfg.TLSOptional = false
		_, err = canal.CurrentPosition(t.Context(), cfg)
		if offered := !strings.Contains(t.Name(), "MariaDB"); (err == nil) != offered {
			t.Errorf("TLS demanded of a server that offers it: %v; got %v", offered, err)
		}
	})
}
