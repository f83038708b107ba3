package debezium

import "github.com/binlog-outbox/binlog-outbox/javaregex"

// TableFilter is the filter of tables that keys of a connector of Debezium's make: which
// tables' rows it reads.
func TableFilter(keys map[string]string) (func(database, table string) (bool, error), error) {
	lists := map[string][]*javaregex.Pattern{}
	for _, key := range []string{"table.include.list", "table.exclude.list", "database.include.list",
		"database.exclude.list"} {
		patterns, err := compileList(splitPatterns(keys[key]))
		if err != nil {
			return nil, err
		}
		lists[key] = patterns
	}
	passes := func(kind, name string) (bool, error) {
		if include := lists[kind+".include.list"]; len(include) > 0 {
			return matchAny(include, name)
		}
		excluded, err := matchAny(lists[kind+".exclude.list"], name)
		return !excluded, err
	}
	return func(database, table string) (bool, error) {
		if ok, err := passes("database", database); !ok || err != nil {
			return false, err
		}
		return passes("table", database+"."+table)
	}, nil
}
