package parity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/binlog-outbox/binlog-outbox/canal"
	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/position"
	"github.com/binlog-outbox/binlog-outbox/schema"
	"github.com/binlog-outbox/binlog-outbox/test/servers"
)

// randomDocuments is how many documents the property is tried with.
const randomDocuments = 5000

// TestJSONTextMeansWhatTheServerSays: the text that is made of a JSON column's binary
// document has the same tokens, in the same order, as the server's own text of it.
func TestJSONTextMeansWhatTheServerSays(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("BINLOG_OUTBOX_PARITY_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BINLOG_OUTBOX_PARITY_SEED=%d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	db := servers.MySQLForTest(t, MySQLOptions())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := db.Exec(ctx, "CREATE DATABASE p",
		"CREATE TABLE p.outbox (id INT AUTO_INCREMENT PRIMARY KEY, payload JSON)"); err != nil {
		t.Fatal(err)
	}
	cfg := canal.Config{Host: db.Host(), Port: db.Port(), User: db.User(), Password: db.Password(), ServerID: 77,
		SpoolDir: t.TempDir(),
		Tables:   canal.Tables{Match: func(d, tab string) (bool, error) { return d == "p", nil }}}
	at, err := canal.CurrentPosition(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var statements []string
	for n := 0; n < randomDocuments; {
		var rows []string
		for size := 0; size < 1<<20 && len(rows) < 500 && n < randomDocuments; n++ {
			doc := g.document()
			size += len(doc)
			rows = append(rows, "("+quote(doc)+")")
		}
		statements = append(statements, "INSERT INTO p.outbox (payload) VALUES "+strings.Join(rows, ","))
	}
	if err := db.Exec(ctx, append([]string{"SET NAMES utf8mb4"}, statements...)...); err != nil {
		t.Fatal(err)
	}
	ours := printed(t, ctx, cfg, at, randomDocuments)
	result, err := db.Query(ctx, "SELECT payload FROM p.outbox ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	bad := 0
	for i := range ours {
		server, err := result.GetString(i, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := sameTokens(ours[i], server); diff != "" && bad < 10 {
			bad++
			t.Errorf("document %d: %s\n  ours   %.300s\n  server %.300s", i+1, diff, ours[i], server)
		}
	}
}

// printed reads n documents from the binlog and prints them as StringConverter does.
func printed(t *testing.T, ctx context.Context, cfg canal.Config, at position.Position, n int) []string {
	t.Helper()
	stream, err := canal.Open(ctx, cfg, at)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var out []string
	var shape *converter.RowSchema
	for len(out) < n {
		transactions, err := stream.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, tx := range transactions {
			for _, row := range tx.Rows {
				if shape == nil || shape.Table != row.Table {
					shape = converter.ForTable("p", row.Table, converter.DefaultModes())
				}
				column := &shape.Columns[1]
				v, err := column.Value(row.After[1], schema.Insert)
				if err != nil {
					t.Fatalf("document %d: %v", len(out)+1, err)
				}
				text, _, err := converter.StringConverter{}.Append(nil, column.Schema, v)
				if err != nil {
					t.Fatalf("document %d: %v", len(out)+1, err)
				}
				out = append(out, string(text))
			}
		}
	}
	return out
}

// sameTokens compares two JSON texts token by token; numbers by what they mean.
func sameTokens(a, b string) string {
	da, db := json.NewDecoder(strings.NewReader(a)), json.NewDecoder(strings.NewReader(b))
	da.UseNumber()
	db.UseNumber()
	for i := 0; ; i++ {
		ta, errA := da.Token()
		tb, errB := db.Token()
		switch {
		case errA == io.EOF && errB == io.EOF:
			return ""
		case errA != nil || errB != nil:
			return fmt.Sprintf("token %d: %v and %v", i, errA, errB)
		}
		na, isNumber := ta.(json.Number)
		nb, _ := tb.(json.Number)
		if isNumber && sameNumber(string(na), string(nb)) {
			continue
		}
		if ta != tb {
			return fmt.Sprintf("token %d: %v and %v", i, ta, tb)
		}
	}
}

// sameNumber: whole numbers up to 64 bits by their digits, all others as the double
// that they stand for, bit by bit.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Float64bits(x) == math.Float64bits(y) && strings.ContainsAny(b, ".eE")
}

// generator makes JSON texts.
type generator struct{ *rand.Rand }

func (g generator) document() string {
	var b bytes.Buffer
	g.value(&b, 0, 1<<g.IntN(8))
	return b.String()
}

// value writes a value of at most size members or elements in all.
func (g generator) value(b *bytes.Buffer, depth, size int) {
	kind := g.IntN(9)
	if depth > 40 || size <= 0 {
		kind = g.IntN(6)
	}
	switch kind {
	case 0:
		b.WriteString([]string{"null", "true", "false"}[g.IntN(3)])
	case 1:
		fmt.Fprint(b, g.Int64()>>g.IntN(64))
	case 2:
		fmt.Fprint(b, g.Uint64()>>g.IntN(64))
	case 3:
		b.WriteString(g.double())
	case 4, 5:
		g.text(b, 70_000)
	case 6:
		b.WriteByte('[')
		for i, n := 0, g.IntN(size+1); i < n; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			g.value(b, depth+1, size/max(n, 1))
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		for i, n := 0, g.IntN(size+1); i < n; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			g.text(b, 3000)
			b.WriteByte(':')
			g.value(b, depth+1, size/max(n, 1))
		}
		b.WriteByte('}')
	}
}

// double writes a finite double in one of the ways to write it.
func (g generator) double() string {
	for {
		f := math.Float64frombits(g.Uint64())
		switch g.IntN(4) {
		case 0:
			f = math.Round(g.NormFloat64()*1e6) / 1e3
		case 1:
			f = g.Float64() * math.Pow10(g.IntN(40)-20)
		}
		if !math.IsInf(f, 0) && !math.IsNaN(f) {
			text := strconv.FormatFloat(f, "eg"[g.IntN(2)], -1, 64)
			if !strings.ContainsAny(text, ".e") {
				text += ".0"
			}
			return text
		}
	}
}

// text writes a string with all that must be escaped, and long ones now and then.
func (g generator) text(b *bytes.Buffer, longest int) {
	n := g.IntN(12)
	if g.IntN(60) == 0 {
		n = g.IntN(longest)
	}
	letters := []rune("abcxyz\"\\/\b\f\n\r\t\x01\x1f\x7f<>&\u00e9\u20ac\u2028\u6f22\U0001f600 ")
	var s strings.Builder
	for range n {
		s.WriteRune(letters[g.IntN(len(letters))])
	}
	text, err := marshal(s.String())
	if err != nil {
		panic(err) // a string
	}
	b.Write(text)
}
