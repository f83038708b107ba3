package envelope_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/binlog-outbox/binlog-outbox/envelope"
)

type value struct {
	Name string `json:"name"`
	N    int    `json:"n,omitempty"`
}

func sealed(t testing.TB, version int, v any) []byte {
	t.Helper()
	data, err := envelope.Seal(version, v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sum is an envelope of any body with the right checksum.
func sum(version, body string) []byte {
	return fmt.Appendf(nil, "%s %08x %s", version, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), body)
}

func TestSealed(t *testing.T) {
	want := value{"orders", 7}
	data := sealed(t, 2, want)
	if string(data) != `2 4ab4724f {"name":"orders","n":7}` {
		t.Errorf("it is written as %s", data)
	}
	for _, knows := range []int{2, 3} {
		var got value
		if err := envelope.Open(data, knows, &got); err != nil || got != want {
			t.Errorf("a reader of version %d reads %+v, %v", knows, got, err)
		}
	}
	if _, err := envelope.Seal(1, func() {}); err == nil {
		t.Error("a function was sealed")
	}
}

func TestRefused(t *testing.T) {
	good := sealed(t, 1, value{"orders", 7})
	tests := map[string]struct {
		data []byte
		want error
	}{
		"a later version":               {sealed(t, 2, value{"orders", 7}), envelope.ErrNewer},
		"a later version in other form": {[]byte("2 <orders/>"), envelope.ErrNewer},
		"nothing":                       {nil, envelope.ErrDamaged},
		"JSON alone":                    {[]byte(`{"name":"orders"}`), envelope.ErrDamaged},
		"version 0":                     {sum("0", `{}`), envelope.ErrDamaged},
		"a negative version":            {sum("-1", `{}`), envelope.ErrDamaged},
		"a version alone":               {[]byte("1"), envelope.ErrDamaged},
		"no value":                      {[]byte("1 00000000"), envelope.ErrDamaged},
		"no checksum":                   {[]byte("1 checksum {}"), envelope.ErrDamaged},
		"a flipped bit":                 {bytes.Replace(good, []byte("orders"), []byte("orderr"), 1), envelope.ErrDamaged},
		"cut short":                     {good[:len(good)-1], envelope.ErrDamaged},
		"an unknown field":              {sum("1", `{"hue":1}`), envelope.ErrDamaged},
		"two values":                    {sum("1", `{} {}`), envelope.ErrDamaged},
		"no JSON":                       {sum("1", `{`), envelope.ErrDamaged},
	}
	for name, tt := range tests {
		if err := envelope.Open(tt.data, 1, new(value)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	err := envelope.Open(tests["a later version"].data, 1, new(value))
	if want := "the state was written by a newer release: it has version 2, this release knows up to 1"; err.Error() != want {
		t.Errorf("a later version is refused with %q", err)
	}
}

// Whatever is read can be written, and then says the same.
func FuzzOpen(f *testing.F) {
	f.Add(sealed(f, 1, value{"orders", 7}))
	f.Add([]byte("1 00000000 "))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again value
		if envelope.Open(data, 1, &got) != nil {
			return
		}
		if err := envelope.Open(sealed(t, 1, got), 1, &again); err != nil || again != got {
			t.Errorf("%q is read as %+v and then as %+v, %v", data, got, again, err)
		}
	})
}
