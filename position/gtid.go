package position

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Flavor tells the two GTID worlds apart. They are never mixed in one position.
type Flavor string

// The two flavors of source.
const (
	MySQL   Flavor = "mysql"
	MariaDB Flavor = "mariadb"
)

// GTID is the identity of one transaction. It is a comparable value; the zero
// value means "the source gave none" (anonymous transaction, GTID mode off).
//
// For MySQL, SID, Tag and Seq are set (Tag since 8.3, usually empty). For
// MariaDB, SID is zero and Domain, Server and Seq are set.
type GTID struct {
	SID    uuid.UUID
	Tag    string // normalised: lower case, no blanks
	Domain uint32
	Server uint32
	Seq    uint64 // MySQL calls it GNO; at least 1 in both flavors
}

// IsZero reports whether g names no transaction.
func (g GTID) IsZero() bool { return g.Seq == 0 }

// Flavor returns which kind of GTID g is; MySQL for the zero value.
func (g GTID) Flavor() Flavor {
	if g.SID == (uuid.UUID{}) && !g.IsZero() {
		return MariaDB
	}
	return MySQL
}

// String returns the server's own text: "uuid:7", "uuid:tag:7" or "0-1-7";
// empty for the zero value.
func (g GTID) String() string {
	switch {
	case g.IsZero():
		return ""
	case g.Flavor() == MariaDB:
		return fmt.Sprintf("%d-%d-%d", g.Domain, g.Server, g.Seq)
	case g.Tag != "":
		return g.SID.String() + ":" + g.Tag + ":" + strconv.FormatUint(g.Seq, 10)
	default:
		return g.SID.String() + ":" + strconv.FormatUint(g.Seq, 10)
	}
}

// sameSource reports whether two GTIDs count in the same sequence.
func (g GTID) sameSource(o GTID) bool {
	return g.SID == o.SID && g.Tag == o.Tag && g.Domain == o.Domain
}

// ParseGTID reads the text that String writes. An empty text gives the zero value.
func ParseGTID(s string) (GTID, error) {
	if s == "" {
		return GTID{}, nil
	}
	if strings.Contains(s, ":") {
		return parseMySQLGTID(s)
	}
	parts := strings.Split(s, "-")
	if len(parts) != 3 {
		return GTID{}, fmt.Errorf("parsing GTID %q: want uuid:number, uuid:tag:number or domain-server-number", s)
	}
	d, err1 := strconv.ParseUint(parts[0], 10, 32)
	n, err2 := strconv.ParseUint(parts[1], 10, 32)
	q, err3 := strconv.ParseUint(parts[2], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || q == 0 {
		return GTID{}, fmt.Errorf("parsing GTID %q: domain, server and number must be unsigned integers", s)
	}
	return GTID{Domain: uint32(d), Server: uint32(n), Seq: q}, nil
}

func parseMySQLGTID(s string) (GTID, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return GTID{}, fmt.Errorf("parsing GTID %q: want uuid:number or uuid:tag:number", s)
	}
	u, err := uuid.Parse(parts[0])
	if err != nil {
		return GTID{}, fmt.Errorf("parsing GTID %q: %w", s, err)
	}
	n, err := strconv.ParseUint(parts[len(parts)-1], 10, 63)
	if err != nil || n == 0 {
		return GTID{}, fmt.Errorf("parsing GTID %q: the number must be a positive integer", s)
	}
	g := GTID{SID: u, Seq: n}
	if len(parts) == 3 {
		g.Tag = strings.ToLower(strings.TrimSpace(parts[1]))
	}
	return g, nil
}

// MarshalText makes a GTID a plain string in JSON and YAML.
func (g GTID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (g *GTID) UnmarshalText(b []byte) (err error) {
	*g, err = ParseGTID(string(b))
	return err
}
