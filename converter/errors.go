package converter

// DataError says that a value does not fit its schema or that a converter does
// not take it (Connect's DataException). It never heals by itself. Its text names
// the converter and the schema, never the value.
type DataError struct {
	// Where is the converter or the conversion that refused, such as
	// "ByteArrayConverter" or "column payload".
	Where string
	// Reason is what is wrong, in one clause.
	Reason string
}

// Error implements error.
func (e *DataError) Error() string { return e.Where + ": " + e.Reason }

func dataError(where, reason string) error { return &DataError{Where: where, Reason: reason} }

// describe names a schema in messages: "string" or "bytes (org.apache...Decimal)".
func describe(s *Schema) string {
	if s == nil {
		return "no schema"
	}
	if s.Name != "" {
		return s.Kind.String() + " (" + s.Name + ")"
	}
	return s.Kind.String()
}
