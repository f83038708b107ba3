package schema

// Merge returns t with what only information_schema can tell, taken from info
// column by column where name and type agree: defaults, COLUMN_TYPE, the M and D
// of FLOAT(M,D), and on MariaDB which BINARY is a UUID or an INET6. Columns on
// which the two disagree stay as the binlog had them, with their default
// unknown; agreed is false then, and the caller may look again later.
//
// t and info are left as they are; the result is a new Table.
func (t *Table) Merge(info *Table) (merged *Table, agreed bool) {
	merged = &Table{Name: t.Name, Columns: make([]Column, len(t.Columns)), PrimaryKey: t.PrimaryKey}
	agreed = len(t.Columns) == len(info.Columns)
	for i := range t.Columns {
		merged.Columns[i] = t.Columns[i]
		j := info.Column(t.Columns[i].Name)
		if j < 0 || !merged.Columns[i].enrich(&info.Columns[j]) {
			agreed = false
		}
		agreed = agreed && i == j
	}
	if merged.PrimaryKey == nil && agreed {
		merged.PrimaryKey = info.PrimaryKey
	}
	return merged, agreed
}

// enrich takes over what info adds, and reports whether both are the same column.
func (c *Column) enrich(info *Column) bool {
	if !c.sameAs(info) {
		return false
	}
	elements, charset := c.Elements, c.Charset
	*c = *info
	if elements != nil {
		c.Elements = elements
	}
	if charset != "" && info.Charset != "" {
		c.Charset = charset
	}
	return true
}

// sameAs compares a column from the binlog with one from information_schema,
// which may be more precise about MariaDB's own types.
func (c *Column) sameAs(info *Column) bool {
	switch info.Type {
	case UUID, Inet6:
		return c.Type == Binary && c.Length == 16 && c.Nullable == info.Nullable
	case Inet4:
		return c.Type == Binary && c.Length == 4 && c.Nullable == info.Nullable
	case Vector:
		if c.Type == VarBinary {
			return c.Nullable == info.Nullable
		}
	case Float, Double:
		return c.Type == info.Type && c.Nullable == info.Nullable
	}
	if c.Type != info.Type || c.Unsigned != info.Unsigned || c.Nullable != info.Nullable ||
		c.Length != info.Length || c.Scale != info.Scale || c.FSP != info.FSP || c.Charset != info.Charset ||
		len(c.Elements) != len(info.Elements) {
		return false
	}
	for i := range c.Elements {
		if c.Elements[i] != info.Elements[i] {
			return false
		}
	}
	return true
}
