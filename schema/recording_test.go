package schema

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recording is what internal/capture wrote about a table of every kind of column
// on a real server.
type recording struct {
	Server  string
	Columns []ColumnInfo
	Map     TableMap
	Rows    [][][2]string
	Want    [][]string
}

func recordings(t testing.TB) map[string]*recording {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("recordings: %v %v", files, err)
	}
	out := map[string]*recording{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := &recording{}
		if err := json.Unmarshal(b, r); err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = r
	}
	return out
}

func (r *recording) tables(t testing.TB) (info, wire *Table) {
	t.Helper()
	info, err := FromInformationSchema(r.Map.Name, r.Columns)
	if err != nil {
		t.Fatal(err)
	}
	if wire, err = FromTableMap(r.Map); err != nil {
		t.Fatal(err)
	}
	return info, wire
}

// rawRow rebuilds the Go values that go-mysql yielded.
func rawRow(t testing.TB, row [][2]string) []any {
	t.Helper()
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = rawValue(t, v[0], v[1])
	}
	return out
}

func rawValue(t testing.TB, kind, text string) any {
	t.Helper()
	if kind == "nil" {
		return nil
	}
	if kind == "string" || kind == "[]byte" {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "string" {
			return string(b)
		}
		return b
	}
	f, err := strconv.ParseFloat(text, 64)
	n, _ := strconv.ParseInt(text, 10, 64)
	u, _ := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := map[string]any{
		"int8": int8(n), "int16": int16(n), "int32": int32(n), "int64": n, "int": int(n),
		"uint8": uint8(u), "uint16": uint16(u), "uint32": uint32(u), "uint64": u,
		"float32": float32(f), "float64": f,
	}[kind]
	if !ok {
		t.Fatalf("value of type %s", kind)
	}
	return v
}

// printed is how SELECT (or HEX, for binary types) shows a decoded value.
func printed(c *Column, v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return strings.ToUpper(hex.EncodeToString(v))
	}
	if c.Type == Year {
		return fmt.Sprintf("%04d", v)
	}
	return fmt.Sprint(v)
}

// Every value of every type, decoded by the shape from either source, is what
// the server itself prints.
func TestValuesAreWhatSelectPrints(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			info, wire := r.tables(t)
			merged, _ := wire.Merge(info)
			for source, table := range map[string]*Table{"information_schema": info, "both": merged} {
				for n, row := range r.Rows {
					values := rawRow(t, row)
					if err := table.DecodeRow(values, nil, nil); err != nil {
						t.Fatalf("%s, row %d: %v", source, n, err)
					}
					for i := range values {
						c := &table.Columns[i]
						if got := printed(c, values[i]); !samePrint(c, got, r.Want[n][i]) {
							t.Errorf("%s, row %d, %s %s: %s, want %s", source, n, c.Name, c.ColumnType, got, r.Want[n][i])
						}
					}
				}
			}
		})
	}
}

// samePrint forgives what is not the values' fault: SELECT prints floats rounded,
// zero-fills numbers, and JSON is compared elsewhere.
func samePrint(c *Column, got, want string) bool {
	switch c.Type {
	case JSON:
		return (got == "NULL") == (want == "NULL")
	case Float, Double:
		g, err1 := strconv.ParseFloat(got, 64)
		w, err2 := strconv.ParseFloat(want, 64)
		return got == want || err1 == nil && err2 == nil && (g == w || (g-w)/(g+w) < 1e-6)
	}
	if strings.Contains(c.ColumnType, "zerofill") {
		want = strings.TrimLeft(want, "0")
	}
	return got == want
}

func TestShapesFromBothSourcesAgree(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			info, wire := r.tables(t)
			if err := info.Check(r.Map); err != nil {
				t.Error(err)
			}
			if err := wire.Check(r.Map); err != nil {
				t.Errorf("the shape from the map does not fit the map: %v", err)
			}
			merged, agreed := wire.Merge(info)
			if !agreed {
				for i := range wire.Columns {
					if !wire.Columns[i].sameAs(&info.Columns[i]) {
						t.Errorf("wire %+v, info %+v", wire.Columns[i], info.Columns[i])
					}
				}
				t.Fatal("the sources do not agree")
			}
			for i := range merged.Columns {
				if m, n := fmt.Sprintf("%#v", merged.Columns[i]), fmt.Sprintf("%#v", info.Columns[i]); m != n &&
					merged.Columns[i].Default == nil {
					t.Errorf("merged %s, info %s", m, n)
				}
			}
			if fmt.Sprint(merged.PrimaryKey, info.PrimaryKey) != "[9 0] [9 0]" {
				t.Errorf("primary keys %v %v", merged.PrimaryKey, info.PrimaryKey)
			}
		})
	}
}
