package parity

import "testing"

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
