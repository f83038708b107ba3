package config

// Delivery is the promise kept towards read_committed consumers.
type Delivery string

// The values of Delivery.
const (
	ExactlyOnce Delivery = "exactly_once"
	AtLeastOnce Delivery = "at_least_once"
)

// Flavor is the kind of server that is read.
type Flavor string

// The values of Flavor. Auto asks the server.
const (
	FlavorAuto    Flavor = "auto"
	FlavorMySQL   Flavor = "mysql"
	FlavorMariaDB Flavor = "mariadb"
)

// LostTransactions says what is done about published transactions that a failed primary
// took with it.
type LostTransactions string

// The values of LostTransactions.
const (
	LostTransactionsStop   LostTransactions = "stop"
	LostTransactionsAccept LostTransactions = "accept"
)

// PositionMode says what a place in the binlog is named by.
type PositionMode string

// The values of PositionMode. Auto takes GTIDs where the server has them on.
const (
	PositionsAuto PositionMode = "auto"
	PositionsGTID PositionMode = "gtid"
	PositionsFile PositionMode = "file"
)

// Start says where a connector without a stored position begins.
type Start string

// The values of Start.
const (
	// StartSnapshot publishes the rows that stand in the table, then reads on.
	StartSnapshot Start = "snapshot"
	// StartSnapshotOnly publishes these rows and nothing else.
	StartSnapshotOnly Start = "snapshot_only"
	// StartWhenNeeded is StartSnapshot, also when the source no longer has the binlog
	// that comes next.
	StartWhenNeeded Start = "when_needed"
	// StartCurrent begins at the end of the binlog.
	StartCurrent Start = "current"
	// StartEarliest begins at the oldest binlog that the server still has.
	StartEarliest Start = "earliest"
	// StartNever refuses to begin: the position must have been imported.
	StartNever Start = "never"
)

// OnError says what becomes of a row that can't be published.
type OnError string

// The values of OnError.
const (
	OnErrorStop       OnError = "stop"
	OnErrorDeadLetter OnError = "dead_letter"
	OnErrorSkip       OnError = "skip"
)

// WithRows reports a start with the rows that stand in the tables.
func (s Start) WithRows() bool {
	return s == StartSnapshot || s == StartSnapshotOnly || s == StartWhenNeeded
}

// SSLMode is Debezium's and MySQL's word for how far TLS goes.
type SSLMode string

// The values of SSLMode.
const (
	SSLDisabled       SSLMode = "disabled"
	SSLPreferred      SSLMode = "preferred"
	SSLRequired       SSLMode = "required"
	SSLVerifyCA       SSLMode = "verify_ca"
	SSLVerifyIdentity SSLMode = "verify_identity"
)

// InvalidText says what is done with text that is not valid in its character set.
type InvalidText string

// The values of InvalidText.
const (
	InvalidTextStop         InvalidText = "stop"
	InvalidTextReplace      InvalidText = "replace"
	InvalidTextQuestionMark InvalidText = "question_mark"
)

// ColumnAction says what becomes of a column's values.
type ColumnAction string

// The values of ColumnAction, and the Debezium option that each stands for.
const (
	ColumnTruncate ColumnAction = "truncate" // column.truncate.to.N.chars
	ColumnMask     ColumnAction = "mask"     // column.mask.with.N.chars
	ColumnHash     ColumnAction = "hash"     // column.mask.hash.*
	ColumnHashV2   ColumnAction = "hash_v2"  // column.mask.hash.v2.*
)

// HashAlgorithms are the words of ColumnChange.Algorithm, Java's names.
func HashAlgorithms() []string {
	return []string{
		"MD5", "SHA-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA-512/224", "SHA-512/256", "SHA3-224", "SHA3-256",
		"SHA3-384", "SHA3-512",
	}
}
