package converter

import (
	"errors"
	"fmt"
)

// The words that Debezium's handling modes take.
const (
	BinaryBytes         = "bytes"
	BinaryBase64        = "base64"
	BinaryBase64URLSafe = "base64-url-safe"
	BinaryHex           = "hex"

	DecimalPrecise = "precise"
	DecimalDouble  = "double"
	DecimalString  = "string"

	TimeAdaptiveMicroseconds = "adaptive_time_microseconds"
	TimeConnect              = "connect"
	TimeMicroseconds         = "microseconds"
	TimeNanoseconds          = "nanoseconds"
	TimeISOString            = "isostring"

	BigintLong    = "long"
	BigintPrecise = "precise"
)

// Modes decide what a column's value becomes. Those with a key are a section of the
// configuration file, where a table (package config) gives their meaning and words.
type Modes struct {
	Binary         string `yaml:"binary"`
	Decimal        string `yaml:"decimal"`
	Time           string `yaml:"time"`
	BigintUnsigned string `yaml:"bigint_unsigned"`
	// AdjustYears takes the years 0-69 for 2000-2069 and 70-99 for 1970-1999.
	AdjustYears bool   `yaml:"adjust_years"`
	SchemaNames string `yaml:"schema_names"`
	// Columns leave columns out and change their values; nil for none.
	Columns *ColumnRules
	// ZeroTimestampIsEpoch gives a nullable TIMESTAMP of zeros the text of the epoch
	// instead of null, as Debezium did up to 3.5.
	ZeroTimestampIsEpoch bool
	// TinyIntIsInt8 gives a signed TINYINT the schema INT8 instead of INT16, as Debezium
	// does since 3.7.
	TinyIntIsInt8 bool
	// Quirks gives the values that Debezium damages as damaged as it does, where
	// they can be reproduced.
	Quirks bool
}

// DefaultModes are Debezium's defaults.
func DefaultModes() Modes {
	return Modes{
		Binary: BinaryBytes, Decimal: DecimalPrecise, Time: TimeAdaptiveMicroseconds,
		BigintUnsigned: BigintLong, AdjustYears: true, SchemaNames: NamesAsTheyAre,
	}
}

// Validate reports every mode that is not one of Debezium's words, joined.
func (m Modes) Validate() error {
	return errors.Join(
		oneOf("binary.handling.mode", m.Binary, BinaryBytes, BinaryBase64, BinaryBase64URLSafe, BinaryHex),
		oneOf("decimal.handling.mode", m.Decimal, DecimalPrecise, DecimalDouble, DecimalString),
		oneOf("time.precision.mode", m.Time, TimeAdaptiveMicroseconds, TimeConnect, TimeMicroseconds, TimeNanoseconds,
			TimeISOString),
		oneOf("bigint.unsigned.handling.mode", m.BigintUnsigned, BigintLong, BigintPrecise),
		oneOf("schema.name.adjustment.mode", m.SchemaNames, NamesAsTheyAre, NamesAvro, NamesAvroUnicode),
	)
}

func oneOf(key, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return fmt.Errorf("%s: %q is not one of %q", key, value, words)
}
