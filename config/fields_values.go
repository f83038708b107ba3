package config

import "github.com/binlog-outbox/binlog-outbox/converter"

func valueFields() []field {
	return []field{
		{path: "connectors[].values", doc: "What the values of columns become: Debezium's handling modes."},
		{path: "connectors[].values.binary", key: "binary.handling.mode",
			enum: []string{converter.BinaryBytes, converter.BinaryBase64, converter.BinaryBase64URLSafe, converter.BinaryHex},
			doc:  "BINARY, VARBINARY and BLOB: as bytes, or as a text that stands for them."},
		{path: "connectors[].values.decimal", key: "decimal.handling.mode",
			enum: []string{converter.DecimalPrecise, converter.DecimalDouble, converter.DecimalString},
			doc:  "DECIMAL: as Connect's Decimal, as a double, which may round, or as text."},
		{path: "connectors[].values.time", key: "time.precision.mode",
			enum: []string{converter.TimeAdaptiveMicroseconds, converter.TimeConnect, converter.TimeMicroseconds,
				converter.TimeNanoseconds, converter.TimeISOString},
			doc: "DATE, TIME and DATETIME: as numbers in the column's own precision, as Connect's types of milliseconds, as " +
				"numbers of one unit, or as text. TIMESTAMP and YEAR are the same in all."},
		{path: "connectors[].values.bigint_unsigned", key: "bigint.unsigned.handling.mode",
			enum: []string{converter.BigintLong, converter.BigintPrecise},
			doc:  "BIGINT UNSIGNED: as a signed number, in which values from 2^63 on are negative, or as Connect's Decimal."},
		{path: "connectors[].values.adjust_years", key: "enable.time.adjuster",
			doc: "Take the years 0 to 69 for 2000 to 2069, and 70 to 99 for 1970 to 1999."},
		{path: "connectors[].values.schema_names", key: "schema.name.adjustment.mode",
			enum: []string{converter.NamesAsTheyAre, converter.NamesAvro, converter.NamesAvroUnicode},
			doc:  "How the names of schemas are made fit for Avro, where a converter writes schemas."},

		{path: "connectors[].columns", doc: "Columns that are left out or changed before anything else looks at them. They " +
			"are named by regular expressions of the whole database.table.column, without regard to case, in Java's syntax."},
		{path: "connectors[].columns.include", replaces: "column.include.list",
			example: `["shop\\.outbox\\.(id|aggregatetype|aggregateid|payload)"]`,
			doc:     "The only columns that are there. The router can't use others."},
		{path: "connectors[].columns.exclude", replaces: "column.exclude.list", example: `["shop\\.outbox\\.internal_.*"]`,
			doc: "Columns that are not there, in place of include."},
		{path: "connectors[].columns.changes", replaces: "column.mask.*, column.truncate.*",
			doc: "Columns whose values are masked or cut; the first change that matches a column counts. The default that " +
				"stands in for NULL is changed as well, but not the default that a schema shows."},
		{path: "connectors[].columns.changes[].columns", replaces: "the values of column.mask.*, column.truncate.*",
			required: true, example: `["shop\\.outbox\\.email"]`,
			doc: "The columns."},
		{path: "connectors[].columns.changes[].action", def: string(ColumnHashV2),
			replaces: "column.mask.*, column.truncate.*", enum: enum(ColumnTruncate, ColumnMask, ColumnHash, ColumnHashV2),
			doc: "Cut texts and bytes to length; put length asterisks in place of each text and of NULL; or put the " +
				"hexadecimal hash of salt and text in place of a text, cut to the length of the column. hash is of Java's " +
				"serialized form of the text, hash_v2 of the text itself."},
		{path: "connectors[].columns.changes[].length", replaces: "column.mask.with.*.chars, column.truncate.to.*.chars",
			doc: "Characters (UTF-16 units, as Java counts) or bytes that are left, or asterisks that stand there."},
		{path: "connectors[].columns.changes[].algorithm", replaces: "column.mask.hash.*", example: "SHA-256",
			enum: append([]string{""}, HashAlgorithms()...),
			doc:  "The hash, by Java's name."},
		{path: "connectors[].columns.changes[].salt", replaces: "column.mask.hash.*.with.salt.*",
			example: "${env:OUTBOX_SALT}",
			doc:     "What is hashed before the text."},
	}
}
