package config

func valueFields() []field {
	return []field{
		{path: "connectors[].values", doc: "What the values of columns become: Debezium's handling modes."},
		{path: "connectors[].values.binary", def: "bytes", replaces: "binary.handling.mode", words: []string{"bytes", "base64", "base64-url-safe", "hex"},
			doc: "BINARY, VARBINARY and BLOB: as bytes, or as a text that stands for them."},
		{path: "connectors[].values.decimal", def: "precise", replaces: "decimal.handling.mode", words: []string{"precise", "double", "string"},
			doc: "DECIMAL: as Connect's Decimal, as a double, which may round, or as text."},
		{path: "connectors[].values.time", def: "adaptive_time_microseconds", replaces: "time.precision.mode",
			words: []string{"adaptive_time_microseconds", "connect", "microseconds", "nanoseconds", "isostring"},
			doc:   "DATE, TIME and DATETIME: as numbers in the column's own precision, as Connect's types of milliseconds, as numbers of one unit, or as text. TIMESTAMP and YEAR are the same in all."},
		{path: "connectors[].values.bigint_unsigned", def: "long", replaces: "bigint.unsigned.handling.mode", words: []string{"long", "precise"},
			doc: "BIGINT UNSIGNED: as a signed number, in which values from 2^63 on are negative, or as Connect's Decimal."},
		{path: "connectors[].values.adjust_years", def: "true", replaces: "enable.time.adjuster",
			doc: "Take the years 0 to 69 for 2000 to 2069, and 70 to 99 for 1970 to 1999."},
	}
}
