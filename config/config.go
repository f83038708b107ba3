package config

import (
	"cmp"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/router"
)

// Config is everything one node is told: about itself, and the connectors that
// it runs. What each setting means, its default and the Debezium or Kafka
// Connect key that it replaces stand in the table that Reference prints; the
// comments here only add what Go code must know.
//
// A Config is read only once built, and safe for concurrent reads.
type Config struct {
	Node       Node        `yaml:"node"`
	Cluster    Cluster     `yaml:"cluster"`
	Admin      Admin       `yaml:"admin"`
	Log        Log         `yaml:"log"`
	Connectors []Connector `yaml:"connectors"`

	// veils are what messages about the configuration hide of the node's own settings.
	veils []veil
	// origins says where each value came from, by path; nil for a Config that
	// was put together in Go.
	origins map[string]source
}

// Node is this process.
type Node struct {
	ID              string        `yaml:"id"`
	DataDir         string        `yaml:"data_dir"`
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
	// RecentEvents bounds what all connectors remember of published events.
	RecentEvents int `yaml:"recent_events"`
}

// Cluster is the Raft group of connector nodes. No peers: a single node.
type Cluster struct {
	Listen    string     `yaml:"listen"`
	Advertise string     `yaml:"advertise"`
	Peers     []string   `yaml:"peers"`
	TLS       ClusterTLS `yaml:"tls"`
	Insecure  bool       `yaml:"insecure"`
	// HeartbeatTimeout, ElectionTimeout and LeaseTimeout 0 are the package ha's own
	// defaults.
	HeartbeatTimeout time.Duration `yaml:"heartbeat_timeout"`
	ElectionTimeout  time.Duration `yaml:"election_timeout"`
	LeaseTimeout     time.Duration `yaml:"lease_timeout"`
	StepDownAfter    time.Duration `yaml:"step_down_after"`
	StepDownCooldown time.Duration `yaml:"step_down_cooldown"`
	PromoteAfter     time.Duration `yaml:"promote_after"`
	Witness          bool          `yaml:"witness"`
	Join             bool          `yaml:"join"`
}

// ClusterTLS secures the traffic between nodes with mutual TLS: each of the
// fields is a path of a PEM file.
type ClusterTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	CA   string `yaml:"client_ca"`
	// Role is a name that the certificate of every node must have.
	Role string `yaml:"role"`
}

// Peer is one node of the cluster, as written in Cluster.Peers ("id=host:port").
type Peer struct {
	ID      string
	Address string
}

// ParsedPeers returns the peers that are written as "id=host:port"; validation
// has refused a Config with others.
func (c Cluster) ParsedPeers() []Peer {
	peers := make([]Peer, 0, len(c.Peers))
	for _, p := range c.Peers {
		if id, address, ok := strings.Cut(p, "="); ok {
			peers = append(peers, Peer{ID: id, Address: address})
		}
	}
	return peers
}

// Admin is the HTTP surface.
type Admin struct {
	Listen      string            `yaml:"listen"`
	AllowRemote bool              `yaml:"allow_remote"`
	WebConfig   string            `yaml:"web_config"`
	Roles       map[string]string `yaml:"roles"`
	ConnectAPI  bool              `yaml:"connect_api"`
	// SecretPaths and SecretVariables are what connectors that come over the REST API
	// may refer to; use Admin.Reach.
	SecretPaths     []string `yaml:"secret_paths"`
	SecretVariables []string `yaml:"secret_variables"`
}

// Reach is what connectors that come over the REST API may refer to.
func (a Admin) Reach() *Reach {
	return &Reach{Paths: a.SecretPaths, Variables: a.SecretVariables}
}

// Log is the format and the level of the log.
type Log struct {
	Level  string            `yaml:"level"`
	Format string            `yaml:"format"`
	Levels map[string]string `yaml:"levels"`
}

// Connector is one outbox on its way to Kafka.
type Connector struct {
	Name        string          `yaml:"name"`
	TopicPrefix string          `yaml:"topic_prefix"`
	Source      Source          `yaml:"source"`
	Outbox      router.Options  `yaml:"outbox"`
	Values      converter.Modes `yaml:"values"`
	Columns     Columns         `yaml:"columns"`
	Format      Format          `yaml:"format"`
	Headers     Headers         `yaml:"headers"`
	Kafka       Kafka           `yaml:"kafka"`
	Limits      Limits          `yaml:"limits"`
	Events      Events          `yaml:"events"`
	Heartbeat   Heartbeat       `yaml:"heartbeat"`
	Errors      Errors          `yaml:"errors"`
	Retry       Retry           `yaml:"retry"`
	Debezium    Debezium        `yaml:"debezium"`

	// veils are what Veil hides.
	veils []veil
}

// Source is the MySQL or MariaDB server and what is read from it.
type Source struct {
	Host string `yaml:"host"`
	Port int    `yaml:"port"`
	// Hosts are further ones; use Source.Addresses.
	Hosts            []string         `yaml:"hosts"`
	PrimaryOnly      bool             `yaml:"primary_only"`
	LostTransactions LostTransactions `yaml:"lost_transactions"`
	User             string           `yaml:"user"`
	Password         Secret           `yaml:"password"`
	Flavor           Flavor           `yaml:"flavor"`
	// ServerID 0 means DerivedServerID.
	ServerID       uint32        `yaml:"server_id"`
	TLS            SourceTLS     `yaml:"tls"`
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	Heartbeat      time.Duration `yaml:"heartbeat"`
	Positions      PositionMode  `yaml:"positions"`
	// Table is the short form of a list of one; use Source.Tables.
	Table string `yaml:"table"`
	// TableList and TablePatterns are the long forms; use Source.Tables.
	TableList     []string    `yaml:"tables"`
	TablePatterns []string    `yaml:"table_patterns"`
	Start         Start       `yaml:"start"`
	InvalidText   InvalidText `yaml:"invalid_text"`
	// DebeziumOffsets is the file in which a Connect worker keeps offsets; empty for
	// none.
	DebeziumOffsets string `yaml:"debezium_offsets"`
	// DebeziumTopics are topics in which Connect workers keep offsets, that of the connector
	// first; DebeziumStatus is the one in which they keep states.
	DebeziumTopics []string `yaml:"debezium_topics"`
	DebeziumStatus string   `yaml:"debezium_status_topic"`
	// DebeziumQuery says that Debezium's connector had include.query, so that its offsets
	// count MariaDB's annotate events.
	DebeziumQuery bool     `yaml:"debezium_query"`
	GTIDInclude   []string `yaml:"gtid_include"`
	GTIDExclude   []string `yaml:"gtid_exclude"`
}

// SourceTLS is TLS towards the database server. CA and Cert are paths of PEM
// files or PEM text; Key is a path, KeyPEM the text.
type SourceTLS struct {
	Mode       SSLMode `yaml:"mode"`
	CA         string  `yaml:"ca"`
	Cert       string  `yaml:"cert"`
	Key        string  `yaml:"key"`
	KeyPEM     Secret  `yaml:"key_pem"`
	ServerName string  `yaml:"server_name"`
}

// Columns leave columns of the outbox tables out and change their values, before the
// router looks at them. Columns are named by regular expressions of the whole
// "database.table.column"; see ColumnMatcher.
type Columns struct {
	Include []string       `yaml:"include"`
	Exclude []string       `yaml:"exclude"`
	Changes []ColumnChange `yaml:"changes"`
}

// ColumnChange changes the values of the columns that one of Columns matches. The first
// change in the list that matches counts.
type ColumnChange struct {
	Columns []string     `yaml:"columns"`
	Action  ColumnAction `yaml:"action"`
	// Length is for truncate and mask, Algorithm and Salt for the hashes.
	Length    int    `yaml:"length"`
	Algorithm string `yaml:"algorithm"`
	Salt      Secret `yaml:"salt"`
}

// Format says how keys, values and headers become bytes. In YAML the type alone may stand
// for the options of a converter: "key: string".
type Format struct {
	Key    converter.Options `yaml:"key"`
	Value  converter.Options `yaml:"value"`
	Header converter.Options `yaml:"header"`
}

// Headers are the record headers beside the router's own.
type Headers struct {
	Context  bool `yaml:"context"`
	Sequence bool `yaml:"sequence"`
}

// Kafka is the cluster written to, and how.
type Kafka struct {
	Brokers               []string      `yaml:"brokers"`
	ClientID              string        `yaml:"client_id"`
	TLS                   KafkaTLS      `yaml:"tls"`
	SASL                  SASL          `yaml:"sasl"`
	Delivery              Delivery      `yaml:"delivery"`
	TransactionalIDPrefix string        `yaml:"transactional_id_prefix"`
	TransactionTimeout    time.Duration `yaml:"transaction_timeout"`
	Compression           string        `yaml:"compression"`
	MaxMessageBytes       Size          `yaml:"max_message_bytes"`
	RequestTimeout        time.Duration `yaml:"request_timeout"`
	CreateTopics          CreateTopics  `yaml:"create_topics"`
	// PositionReplication is the replication factor of the position topic; -1:
	// three, or as many as there are brokers.
	PositionReplication int `yaml:"position_replication_factor"`
}

// KafkaTLS is TLS towards the brokers. CA and Cert are paths of PEM files or PEM
// text; Key is a path, KeyPEM the text.
type KafkaTLS struct {
	Enabled            bool   `yaml:"enabled"`
	CA                 string `yaml:"ca"`
	Cert               string `yaml:"cert"`
	Key                string `yaml:"key"`
	KeyPEM             Secret `yaml:"key_pem"`
	ServerName         string `yaml:"server_name"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// On reports whether the brokers are spoken to over TLS: asked for, or implied
// by any of the other fields.
func (t KafkaTLS) On() bool {
	return t.Enabled || t.CA != "" || t.Cert != "" || t.Key != "" || !t.KeyPEM.IsZero() ||
		t.ServerName != "" || t.InsecureSkipVerify
}

// SASL is how this client shows who it is. An empty Mechanism is none.
type SASL struct {
	Mechanism    string `yaml:"mechanism"`
	User         string `yaml:"user"`
	Password     Secret `yaml:"password"`
	Token        Secret `yaml:"token"`
	TokenURL     string `yaml:"token_url"`
	ClientID     string `yaml:"client_id"`
	ClientSecret Secret `yaml:"client_secret"`
	Scope        string `yaml:"scope"`
	// Extensions are sent beside an OAUTHBEARER token ("logicalCluster").
	Extensions map[string]string `yaml:"extensions"`
}

// CreateTopics says how missing topics are made. With nothing set they are left
// to the broker's auto.create.topics.enable.
type CreateTopics struct {
	Partitions        int               `yaml:"partitions"`
	ReplicationFactor int               `yaml:"replication_factor"`
	Configs           map[string]string `yaml:"configs"`
	Groups            []TopicGroup      `yaml:"groups"`
}

// On reports whether topics are created by us.
func (c CreateTopics) On() bool {
	return c.Partitions != 0 || c.ReplicationFactor != 0 || len(c.Configs) > 0 || len(c.Groups) > 0
}

// TopicGroup is another set of creation settings, for the topics whose names
// match one of Include and none of Exclude (regular expressions of the whole
// name). The first matching group in the list counts.
type TopicGroup struct {
	Name              string            `yaml:"name"`
	Include           []string          `yaml:"include"`
	Exclude           []string          `yaml:"exclude"`
	Partitions        int               `yaml:"partitions"`
	ReplicationFactor int               `yaml:"replication_factor"`
	Configs           map[string]string `yaml:"configs"`
}

// Limits bound memory and the size of what is committed in one go.
type Limits struct {
	QueueBytes       Size `yaml:"queue_bytes"`
	BatchRecords     int  `yaml:"batch_records"`
	BatchBytes       Size `yaml:"batch_bytes"`
	TransactionBytes Size `yaml:"transaction_bytes"`
	TransactionRows  int  `yaml:"transaction_rows"`
}

// Events says how much is remembered of the events that were published, and how fast
// the binlog is searched for others. IDs 0 remembers none, ScanRate 0 is no bound.
type Events struct {
	Recent   int  `yaml:"recent"`
	ScanRate Size `yaml:"scan_rate"`
}

// Heartbeat are the records that show consumers and monitors that an idle
// connector is alive. Interval 0 is off.
type Heartbeat struct {
	Interval    time.Duration `yaml:"interval"`
	TopicPrefix string        `yaml:"topic_prefix"`
}

// Errors says what becomes of rows that can't be published.
type Errors struct {
	Row        OnError        `yaml:"row"`
	Record     OnError        `yaml:"record"`
	DeadLetter DeadLetterSink `yaml:"dead_letter"`
}

// DeadLetterSink is where rows go that can't be published as they should.
type DeadLetterSink struct {
	// Topic is empty for the default; use Connector.DeadLetterTopic.
	Topic string `yaml:"topic"`
}

// DeadLetterTopic is the topic of the connector's dead letters.
func (c *Connector) DeadLetterTopic() string {
	return cmp.Or(c.Errors.DeadLetter.Topic, c.Name+".dead-letter")
}

// PositionTopic is the topic of the connector's position in Kafka.
func (c *Connector) PositionTopic() string {
	return c.transactionalID() + ".position"
}

// Retry is the back-off between two terms of a connector. MaxAttempts -1 is
// for ever.
type Retry struct {
	MaxAttempts int           `yaml:"max_attempts"`
	Initial     time.Duration `yaml:"initial"`
	Max         time.Duration `yaml:"max"`
}

// Debezium says how closely Debezium is followed where it can be told apart.
type Debezium struct {
	Quirks bool   `yaml:"quirks"`
	Compat string `yaml:"compat"`
}
