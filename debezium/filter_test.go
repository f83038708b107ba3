package debezium

import "testing"

func TestTableFilter(t *testing.T) {
	for _, test := range []struct {
		keys map[string]string
		want string
	}{
		{nil, "shop.outbox shop.orders other.outbox"},
		{map[string]string{"table.include.list": `SHOP\.outbox, x\.y`}, "shop.outbox"},
		{map[string]string{"table.include.list": `.*\.outbox`, "database.include.list": "other"}, "other.outbox"},
		{map[string]string{"table.exclude.list": `.*\.outbox`}, "shop.orders"},
		{map[string]string{"database.exclude.list": "shop"}, "other.outbox"},
	} {
		filter, err := TableFilter(test.keys)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, name := range [][2]string{{"shop", "outbox"}, {"shop", "orders"}, {"other", "outbox"}} {
			if ok, err := filter(name[0], name[1]); err != nil {
				t.Fatal(err)
			} else if ok {
				got += " " + name[0] + "." + name[1]
			}
		}
		if got != " "+test.want {
			t.Errorf("%v: %s", test.keys, got)
		}
	}
	if _, err := TableFilter(map[string]string{"table.include.list": "("}); err == nil {
		t.Error("a pattern that is none passes")
	}
}
