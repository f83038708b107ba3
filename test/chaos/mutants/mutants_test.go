package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each mutant still fits the source; what it does is for make mutants to find out.
func TestMutantsFit(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range Mutants() {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if _, err := m.Apply(root, t.TempDir()); err != nil {
			t.Error(err)
		}
		if m.Rule == "" || m.Harm == "" || m.Level == "" || m.Test == "" || len(m.Edits) == 0 {
			t.Errorf("mutant %s says too little: %+v", m.Name, m)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{"three", "two"} {
		m := Mutant{Name: "x", Edits: []Edit{{"a.go", old, ""}}}
		if _, err := m.Apply(root, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no longer fits") {
			t.Errorf("an edit of %q: %v", old, err)
		}
	}
	m := Mutant{Name: "x", Edits: []Edit{{"a.go", "one", "1"}, {"a.go", "1 two", "12"}}}
	dir := t.TempDir()
	if _, err := m.Apply(root, dir); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "x", "a.go")); string(b) != "12 two" {
		t.Errorf("two edits of one file make %q", b)
	}
}
