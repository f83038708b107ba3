package router

// Follow makes the configuration that of a release of Debezium ("2.7" to "3.7"),
// where releases send different records. It changes what no option of Debezium does.
//
//   - Context headers: none up to 3.1, three in 3.2 and 3.3, four since 3.4.
//   - A TIMESTAMP of zeros: the epoch up to 3.5, null in a nullable column since 3.6.
//   - A column that is missing and was to go into the envelope: an error up to 3.5,
//     whatever the option says.
//   - TINYINT: INT8 in schemas since 3.7, INT16 before.
//   - Records in nested arrays of an expanded payload: their members' names begin
//     with "null." up to 2.7.
func (c *Config) Follow(release string) {
	switch {
	case release <= "3.1":
		c.Context = nil
	case release <= "3.3" && len(c.Context) > 3:
		c.Context = c.Context[:3]
	}
	c.Modes.ZeroTimestampIsEpoch = release <= "3.5"
	c.missingEnvelopeFails = release <= "3.5"
	c.Modes.TinyIntIsInt8 = release >= "3.7"
	c.nullPaths = release <= "2.7"
}
