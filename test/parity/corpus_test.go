package parity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamesAndIDsAreUnique(t *testing.T) {
	names, ids := map[string]bool{}, map[string]string{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
		if other := ids[c.ID()]; other != "" && other != c.Name {
			t.Errorf("%q and %q have one id", c.Name, other)
		}
		ids[c.ID()] = c.Name
	}
}

// TestCorpusIsRecorded: as many cases and records as are promised, none left over, and
// every difference is one that the documentation names.
func TestCorpusIsRecorded(t *testing.T) {
	store, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "eventrouter.md"))
	if err != nil {
		t.Fatal(err)
	}
	cases := Cases()
	records := 0
	for i := range cases {
		c := &cases[i]
		r, ok := store.Get(c)
		if !ok {
			t.Errorf("%s/%s is not recorded", c.Group, c.Name)
		}
		records += len(r.Records)
		if c.Differs != "" && !strings.Contains(string(page), "\n| "+c.Differs+" | ") {
			t.Errorf("docs/eventrouter.md does not list the difference %s", c.Differs)
		}
	}
	stored := 0
	for _, group := range store {
		stored += len(group)
	}
	if stored != len(cases) {
		t.Errorf("%d cases are recorded, %d exist", stored, len(cases))
	}
	if len(cases) < 120 || records < 2000 {
		t.Errorf("the corpus has %d cases and %d records", len(cases), records)
	}
}
