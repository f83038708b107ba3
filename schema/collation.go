package schema

import "sort"

// collationRange says that the collation ids first..last belong to charset.
type collationRange struct {
	first, last uint16
	charset     string
}

// CharsetOf returns the character set that a collation id belongs to. The ids
// of MySQL and MariaDB do not collide, so one table serves both; MariaDB's
// uca1400 ids start at 2048.
func CharsetOf(collation uint64) (charset string, ok bool) {
	i := sort.Search(len(collationRanges), func(i int) bool {
		return uint64(collationRanges[i].last) >= collation
	})
	if i == len(collationRanges) || uint64(collationRanges[i].first) > collation {
		return "", false
	}
	return collationRanges[i].charset, true
}
