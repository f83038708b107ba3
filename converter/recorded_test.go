package converter

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
)

// testdata/java.json holds what Java makes of the same values: Double.toString and
// Float.toString by the algorithm of JDK 19 and newer, BigDecimal, and the JSON
// printer of the MySQL binlog client inside Debezium. "right" is ours where that
// printer is wrong.
type recorded struct {
	Doubles   []struct{ Bits, Text, Exact string }
	Floats    []struct{ Bits, Text string }
	Decimals  []struct{ Value, Text, Bytes string }
	Documents []struct {
		Name, Doc, Text string
		Right           string
	}
}

func loadRecorded(t testing.TB) recorded {
	t.Helper()
	raw, err := os.ReadFile("testdata/java.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestJavaDoubleText(t *testing.T) {
	for _, d := range loadRecorded(t).Doubles {
		bits, err := strconv.ParseUint(d.Bits, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		f := math.Float64frombits(bits)
		if got := string(appendDouble(nil, f)); got != d.Text {
			t.Errorf("%s: %s, want %s", d.Bits, got, d.Text)
		}
		if d.Exact == "" {
			continue
		}
		if got := string(appendExactDouble(nil, f)); got != d.Exact && "-"+d.Exact != got {
			t.Errorf("%s: exact %s, want %s", d.Bits, got, d.Exact)
		}
	}
}

func TestJavaFloatText(t *testing.T) {
	for _, d := range loadRecorded(t).Floats {
		bits, err := strconv.ParseUint(d.Bits, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendFloat(nil, math.Float32frombits(uint32(bits)))); got != d.Text {
			t.Errorf("%s: %s, want %s", d.Bits, got, d.Text)
		}
	}
}

func TestJavaBigDecimal(t *testing.T) {
	for _, d := range loadRecorded(t).Decimals {
		v, ok := newDecimal(d.Value)
		if !ok {
			t.Fatalf("%s is refused", d.Value)
		}
		if got := string(v.AppendText(nil)); got != d.Text {
			t.Errorf("%s: %s, want %s", d.Value, got, d.Text)
		}
		if got := hex.EncodeToString(v.unscaled(nil)); got != d.Bytes {
			t.Errorf("%s: bytes %s, want %s", d.Value, got, d.Bytes)
		}
	}
}

func TestJSONDocumentText(t *testing.T) {
	for _, d := range loadRecorded(t).Documents {
		t.Run(d.Name, func(t *testing.T) {
			doc, err := hex.DecodeString(d.Doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := AppendJSONDocument([]byte("x"), doc, true)
			if err != nil || string(got) != "x"+d.Text {
				t.Errorf("with quirks: %s, %v\nwant x%s", got, err, d.Text)
			}
			want := d.Text
			if d.Right != "" {
				want = d.Right
			}
			got, err = AppendJSONDocument(nil, doc, false)
			if err != nil || string(got) != want {
				t.Errorf("%s, %v\nwant %s", got, err, want)
			}
		})
	}
}
