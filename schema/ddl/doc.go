// Package ddl carries what is known of the columns of tables through the DDL statements
// that a binlog holds, as the server itself did when it ran them.
//
// It follows columns only: their names, order, types, signs, character sets, words,
// defaults, visibility, and the primary key. What else a statement does is read, so that
// nothing in it is passed over unseen, and has no effect. A clause that is not known is
// never ignored: the tables of its statement are then unknown, and the server has to be
// asked.
package ddl
