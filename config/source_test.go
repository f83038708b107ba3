package config

import (
	"slices"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Source
		want []string
	}{
		{"host alone", Source{Host: "a", Port: 3306}, []string{"a:3306"}},
		{"host and hosts", Source{Host: "a", Port: 3307, Hosts: []string{"b", "c:1"}}, []string{"a:3307", "b:3307", "c:1"}},
		{"hosts alone", Source{Port: 3306, Hosts: []string{"b:2", "::1", "[::2]", "[::3]:4"}},
			[]string{"b:2", "[::1]:3306", "[::2]:3306", "[::3]:4"}},
	} {
		if got := c.s.Addresses(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestB012Origins(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-2222-3333-4444-555555555555"
	for _, c := range []struct {
		name string
		s    Source
		a, b bool
	}{
		{"include", Source{GTIDInclude: []string{"3E11FA47-71ca-11e1-9e33-c80aa9429562"}}, true, false},
		{"include a pattern of the whole", Source{GTIDInclude: []string{"3e11", "1111.*"}}, false, true},
		{"exclude", Source{GTIDExclude: []string{"3e11.*"}}, false, true},
	} {
		counts, err := c.s.Origins()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		gotA, errA := counts(a)
		if gotB, errB := counts(b); gotA != c.a || gotB != c.b || errA != nil || errB != nil {
			t.Errorf("%s: %t, %t, %v, %v", c.name, gotA, gotB, errA, errB)
		}
	}
	if counts, err := (Source{}).Origins(); counts != nil || err != nil {
		t.Error("without lists there is a filter")
	}
}
