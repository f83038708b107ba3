package schema

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestInvalidTextAsJava holds texts drawn by chance against what Java made of them. Sets
// in which the server and Java take some bytes for different characters are compared
// where neither of those is in the text.
func TestInvalidTextAsJava(t *testing.T) {
	data, err := os.ReadFile("testdata/java-decoded.txt")
	if err != nil {
		t.Fatal(err)
	}
	compared, invalid := 0, 0
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), " ")
		if len(f) != 3 {
			continue
		}
		raw, _ := hex.DecodeString(f[1])
		units, _ := hex.DecodeString(f[2])
		var java []uint16
		for i := 0; i+1 < len(units); i += 2 {
			java = append(java, uint16(units[i])<<8|uint16(units[i+1]))
		}
		p := InvalidText{AsJava: true}
		got, err := p.decode(f[0], string(raw), false)
		if err != nil {
			t.Fatal(err)
		}
		invalid += int(p.Replaced())
		compared++
		if want := string(utf16.Decode(java)); got != want {
			t.Errorf("%s %s: %q, Java has %q", f[0], f[1], got, want)
		}
	}
	if compared < 1500 || invalid < 500 {
		t.Errorf("%d texts, %d of them not valid", compared, invalid)
	}
}

func TestInvalidTextPolicies(t *testing.T) {
	column := func(p *InvalidText) Column {
		return Column{Name: "c", Type: VarChar, Charset: "cp1251", Length: 9, InvalidText: p}
	}
	if _, err := new(column(nil)).Decode("A\x98B"); err == nil || strings.Contains(err.Error(), "A") {
		t.Errorf("%v", err)
	}
	marks, java := &InvalidText{}, &InvalidText{AsJava: true}
	for p, want := range map[*InvalidText]string{marks: "A?Б", java: "A\uFFFDБ"} {
		for range 2 {
			if v, err := new(column(p)).Decode("A\x98\xc1"); v != want || err != nil {
				t.Errorf("%q, %v, want %q", v, err, want)
			}
		}
		if v, err := new(column(p)).DecodeSelected([]byte("A\x98\xc1")); v != "A?Б" || err != nil {
			t.Errorf("selected: %q, %v", v, err)
		}
		if v, _ := new(column(p)).Decode("valid \xc1"); v != "valid Б" || p.Replaced() != 3 {
			t.Errorf("%q, %d texts, want 3", v, p.Replaced())
		}
	}
}
