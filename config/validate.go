package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/binlog-outbox/binlog-outbox/converter"
	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// validate adds what is wrong with the values and their relations.
func (b *builder) validate() {
	b.everySetting()
	b.node()
	names := map[string]int{}
	for i := range b.config.Connectors {
		c := &b.config.Connectors[i]
		path := index("connectors", i)
		before := len(b.problems)
		if first, ok := names[c.Name]; ok && c.Name != "" {
			b.reject(join(path, "name"), "%q is also the name of connectors[%d]; each needs its own", c.Name, first)
		} else {
			names[c.Name] = i
		}
		b.together(path, i)
		b.connector(path, c)
		b.source(join(path, "source"), &c.Source)
		b.outbox(path, c)
		b.kafka(join(path, "kafka"), &c.Kafka)
		b.runtime(path, c)
		if len(b.problems) == before && !b.Builder.KeepReferences {
			b.hooks(path, c)
		}
	}
}

// together holds a connector against those before it: what must not be shared.
func (b *builder) together(path string, i int) {
	c := &b.config.Connectors[i]
	for j := range i {
		if o := &b.config.Connectors[j]; c.Name != o.Name { // said already
			for _, e := range c.conflicts(o, fmt.Sprintf("connectors[%d]", j)) {
				b.require(false, join(path, e.Path), "%v", e.Err)
			}
		}
	}
}

// ConflictWith returns a FieldError when c can't run beside o, which has another
// name: they would share what each needs for itself.
func (c *Connector) ConflictWith(o *Connector) error {
	for _, e := range c.conflicts(o, "connector "+o.Name) {
		e.Err = errors.New(c.Veil(o.Veil(e.Err.Error())))
		return &e
	}
	return nil
}

func (c *Connector) conflicts(o *Connector, other string) []FieldError {
	var out []FieldError
	if id := c.transactionalID(); id == o.transactionalID() {
		out = append(out, FieldError{"kafka.transactional_id_prefix",
			fmt.Errorf("makes the transactional id %s, which is also that of %s; each needs its own", id, other)})
	}
	shared := func(a string) bool { return slices.Contains(o.Source.Addresses(), a) }
	if c.Source.ServerID != 0 && c.Source.ServerID == o.Source.ServerID &&
		slices.ContainsFunc(c.Source.Addresses(), shared) {
		out = append(out, FieldError{"source.server_id",
			fmt.Errorf("%d is also that of %s, which reads the same server; MySQL would end the one's connection for "+
				"the other's", c.Source.ServerID, other)})
	}
	return out
}

// transactionalID names the connector to Kafka, and its position topic.
func (c *Connector) transactionalID() string { return c.Kafka.TransactionalIDPrefix + "." + c.Name }

// origin is where the setting at path was written, or else the nearest section
// around it that was.
func (b *builder) origin(path string) Origin {
	for {
		if s, ok := b.origins[path]; ok {
			return s.origin
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return Origin{}
		}
		path = path[:cut]
	}
}

// reject adds a problem with the setting at path, unless it, or the section it is
// in, could not be read in the first place. The message never tells what a reference
// stands for.
func (b *builder) reject(path, format string, args ...any) {
	b.tell(path, b.untold(path, format, args))
}

// tell does so with a message that holds no value of a reference.
func (b *builder) tell(path, message string) {
	for p := path; ; {
		if b.failed[p] || b.unread(p) {
			return
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			break
		}
		p = p[:cut]
	}
	b.problem(path, b.origin(path), "%s", message)
}

// unread reports whether the value at path is a reference that was not read.
func (b *builder) unread(path string) bool {
	s := b.origins[path]
	return s.raw != "" && (b.Builder.KeepReferences || b.Builder.Blind && s.remote)
}

func (b *builder) require(ok bool, path, format string, args ...any) {
	if !ok {
		b.reject(path, format, args...)
	}
}

// everySetting holds each value against its row of the table.
func (b *builder) everySetting() {
	walk("", reflect.ValueOf(b.config).Elem(), func(path string, v reflect.Value) {
		f := b.table[generalPath(path)]
		if f.required && (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && v.Len() == 0 {
			b.reject(path, "is required; for instance %s", f.example)
		}
		if len(f.enum) > 0 {
			b.enumValue(path, v.String(), f.enum)
		}
		if s, ok := v.Interface().(Secret); ok && !b.Builder.KeepReferences && !b.Builder.Blind {
			if _, err := s.Resolve(); err != nil {
				b.tell(path, err.Error())
			}
		}
	})
}

func (b *builder) enumValue(path, value string, allowed []string) {
	for _, w := range allowed {
		if value == w {
			return
		}
	}
	var shown []string
	for _, w := range allowed {
		if w != "" {
			shown = append(shown, w)
		}
	}
	hint := ""
	if near := Nearest(value, shown); near != "" && len(shown) > 1 {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	list := strings.Join(shown, ", ")
	switch refs := b.references(path); {
	case refs != "":
		b.tell(path, "what "+refs+" stands for is not one of "+list)
	case len(shown) == 1:
		b.reject(path, "%q is not possible; it can only be %s", value, list)
	default:
		b.reject(path, "%q is not one of %s%s", value, list, hint)
	}
}

func (b *builder) node() {
	c := b.config
	b.require(c.Node.ID != "", "node.id", "is required, since this host has no name")
	b.require(c.Node.DataDir != "", "node.data_dir", "must not be empty")
	b.positive("node.shutdown_timeout", c.Node.ShutdownTimeout)
	b.require(c.Node.RecentEvents >= 0 && c.Node.RecentEvents <= maxRecentEvents, "node.recent_events",
		"%d must be between 0 and %d", c.Node.RecentEvents, maxRecentEvents)
	b.cluster(&c.Cluster)
	if c.Admin.Listen != "" {
		b.address("admin.listen", c.Admin.Listen)
		if c.Admin.WebConfig != "" {
			b.readable("admin.web_config", c.Admin.WebConfig)
		}
		b.require(c.Admin.AllowRemote || c.Admin.WebConfig != "" || loopback(c.Admin.Listen), "admin.listen",
			"%q can be reached from other hosts, and the interface has no passwords; listen on 127.0.0.1, name a file with "+
				"users in admin.web_config, or set admin.allow_remote if the network protects it", c.Admin.Listen)
	}
	for i, p := range c.Admin.SecretPaths {
		b.require(filepath.IsAbs(p), index("admin.secret_paths", i), "%q is not an absolute path", p)
	}
	b.require(len(c.Admin.Roles) == 0 || c.Admin.WebConfig != "" || c.Admin.Listen == "", "admin.roles",
		"nobody could ever have one of them: without users or client certificates in admin.web_config nobody is known; "+
			"name such a file, or leave the roles out")
	for user, role := range c.Admin.Roles {
		b.enumValue("admin.roles."+user, role, []string{"view", "operate", "admin"})
	}
	for component, level := range c.Log.Levels {
		b.enumValue("log.levels."+component, level, b.table["log.level"].enum)
	}
}

func (b *builder) cluster(c *Cluster) {
	files := []string{c.TLS.Cert, c.TLS.Key, c.TLS.CA}
	set := 0
	for i, key := range []string{"cert", "key", "client_ca"} {
		if files[i] != "" {
			set++
			b.readable("cluster.tls."+key, files[i])
		}
	}
	b.require(set == 0 || set == 3, "cluster.tls", "needs all of cert, key and client_ca, or none")
	if len(c.Peers) == 0 {
		b.require(c.Listen == "", "cluster.listen", "has no use without cluster.peers; name the nodes, this one too")
		return
	}
	ids := map[string]bool{}
	for i, p := range c.Peers {
		path := index("cluster.peers", i)
		id, address, ok := strings.Cut(p, "=")
		if !ok || id == "" {
			b.reject(path, "%q is not id=host:port", p)
			continue
		}
		b.address(path, address)
		b.require(!ids[id], path, "the node %s is in the list twice", id)
		ids[id] = true
	}
	if c.Join {
		b.require(!ids[b.config.Node.ID], "cluster.join",
			"has no use for a node that is in peers; take %s out of the list, or join out", b.config.Node.ID)
		b.require(c.Advertise != "", "cluster.advertise", "is required with cluster.join")
	} else {
		b.require(ids[b.config.Node.ID], "cluster.peers", "does not list this node, %s; add it, or set node.id",
			b.config.Node.ID)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"heartbeat_timeout", c.HeartbeatTimeout}, {"election_timeout", c.ElectionTimeout}, {"lease_timeout", c.LeaseTimeout},
		{"step_down_after", c.StepDownAfter}, {"step_down_cooldown", c.StepDownCooldown}, {"promote_after", c.PromoteAfter},
	} {
		b.require(d.value >= 0, "cluster."+d.key, "%s must not be negative", d.value)
	}
	if c.Listen == "" {
		b.reject("cluster.listen", "is required with cluster.peers; for instance 0.0.0.0:7400")
	} else {
		b.address("cluster.listen", c.Listen)
		b.require(c.TLS.Cert != "" || c.Insecure || loopback(c.Listen), "cluster.listen",
			"%q can be reached from other hosts; give cluster.tls, or set cluster.insecure if the network protects it", c.Listen)
	}
	if c.Advertise != "" {
		b.address("cluster.advertise", c.Advertise)
	}
}

// topicName is what Kafka allows; a name is at most 249 characters long.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (b *builder) topicWord(path, value string) {
	b.require(value == "" || topicName.MatchString(value), path,
		"%q can't be a part of a topic's name; use letters, digits, dot, underscore and hyphen", value)
}

func (b *builder) connector(path string, c *Connector) {
	b.topicWord(join(path, "name"), c.Name)
	b.topicWord(join(path, "topic_prefix"), c.TopicPrefix)
	position := c.PositionTopic()
	b.require(len(position) <= 249, join(path, "name"), "is too long; %s would be the name of the position topic",
		position)
}

func (b *builder) source(path string, s *Source) {
	b.hosts(path, s)
	b.require(s.Port > 0 && s.Port < 1<<16, join(path, "port"), "%d is not a port; ports are 1 to 65535", s.Port)
	b.positive(join(path, "connect_timeout"), s.ConnectTimeout)
	b.positive(join(path, "heartbeat"), s.Heartbeat)
	b.tables(path, s)
	b.require(s.DebeziumOffsets == "" || !b.origins[join(path, "debezium_offsets")].remote, join(path, "debezium_offsets"),
		"names a file of the node, and can't come over the REST API; take it out")
	_, err := s.Origins()
	b.hookError(strings.TrimSuffix(path, ".source"), err)
	b.require(len(s.GTIDInclude) == 0 || len(s.GTIDExclude) == 0, join(path, "gtid_exclude"),
		"can't go together with gtid_include")
	b.certificate(join(path, "tls"), s.TLS.CA, s.TLS.Cert, s.TLS.Key, s.TLS.KeyPEM)
}

func (b *builder) hosts(path string, s *Source) {
	if _, _, err := net.SplitHostPort(s.Host); err == nil {
		b.reject(join(path, "host"), "%q names a port too; give it as port", s.Host)
	}
	if s.Host == "" && len(s.Hosts) == 0 {
		b.reject(join(path, "host"), "is required; for instance mysql.example.internal")
	}
	addresses := s.Addresses()
	first := len(addresses) - len(s.Hosts)
	seen := map[string]bool{}
	for i, address := range addresses {
		known := seen[strings.ToLower(address)]
		seen[strings.ToLower(address)] = true
		if i < first {
			continue
		}
		at := index(join(path, "hosts"), i-first)
		host, port, err := net.SplitHostPort(address)
		n, e := strconv.Atoi(port)
		b.require(err == nil && host != "" && e == nil && n > 0 && n < 1<<16, at, "%q is not a host; write host or host:port",
			address)
		b.require(!known, at, "%s is in the list twice", address)
	}
	b.require(len(seen) < 2 || s.Positions != PositionsFile, join(path, "positions"),
		"files and offsets are one server's own and can't go together with several hosts; take auto or gtid")
}

func (b *builder) tables(path string, s *Source) {
	if s.Table == "" && len(s.TableList) == 0 && len(s.TablePatterns) == 0 {
		b.reject(join(path, "table"), "is required; for instance shop.outbox")
		return
	}
	b.require(s.Table == "" || len(s.TableList) == 0, join(path, "table"),
		"can't go together with tables; put it into that list")
	if s.Table != "" {
		if _, err := ParseTableName(s.Table); err != nil {
			b.reject(join(path, "table"), "%v", err)
		}
	}
	seen := map[string]bool{}
	for i, t := range s.TableList {
		_, err := ParseTableName(t)
		b.require(err == nil, index(join(path, "tables"), i), "%v", err)
		b.require(!seen[strings.ToLower(t)], index(join(path, "tables"), i), "%q is in the list twice", t)
		seen[strings.ToLower(t)] = true
	}
	for i, p := range s.TablePatterns {
		_, err := javaregex.CompileFold(p)
		b.require(err == nil, index(join(path, "table_patterns"), i), "%v", notRegex(err))
	}
}

func (b *builder) outbox(path string, c *Connector) {
	for _, column := range []struct{ key, name string }{
		{"id", c.Outbox.ID}, {"key", c.Outbox.Key}, {"payload", c.Outbox.Payload}, {"route_by", c.Outbox.RouteBy},
	} {
		b.require(column.name != "", path+".outbox."+column.key, "must name a column")
	}
	for i, op := range c.Outbox.SkipOperations {
		b.enumValue(index(path+".outbox.skip_operations", i), op, []string{"c", "u", "d", "t", "none"})
	}
	for _, f := range []struct {
		key string
		c   converter.Options
	}{{"key", c.Format.Key}, {"value", c.Format.Value}, {"header", c.Format.Header}} {
		b.require(f.c.Delegate == "" || f.c.Type == converter.TypeBinary, path+".format."+f.key+".delegate",
			"is for the type binary only")
	}
	b.columns(path+".columns", &c.Columns)
}

func (b *builder) columns(path string, c *Columns) {
	b.require(len(c.Include) == 0 || len(c.Exclude) == 0, join(path, "exclude"),
		"can't go together with include; leave one of them out")
	patterns := func(path string, list []string) {
		for i, p := range list {
			_, err := ColumnMatcher([]string{p})
			b.require(err == nil, index(path, i), "%v", err)
		}
	}
	patterns(join(path, "include"), c.Include)
	patterns(join(path, "exclude"), c.Exclude)
	for i, change := range c.Changes {
		at := index(join(path, "changes"), i)
		patterns(join(at, "columns"), change.Columns)
		b.count(join(at, "length"), change.Length, true)
		hash := change.Action == ColumnHash || change.Action == ColumnHashV2
		b.require(hash == (change.Algorithm != ""), join(at, "algorithm"), "is for hash and hash_v2, which need it")
		b.require(hash == !change.Salt.IsZero(), join(at, "salt"), "is for hash and hash_v2, which need it")
	}
}

func (b *builder) kafka(path string, k *Kafka) {
	for i, broker := range k.Brokers {
		b.address(index(join(path, "brokers"), i), broker)
	}
	b.certificate(join(path, "tls"), k.TLS.CA, k.TLS.Cert, k.TLS.Key, k.TLS.KeyPEM)
	b.require(k.TLS.CA == "" || !k.TLS.InsecureSkipVerify, path+".tls.insecure_skip_verify",
		"can't go together with ca; leave one of them out")
	b.sasl(join(path, "sasl"), &k.SASL)
	b.topicWord(join(path, "transactional_id_prefix"), k.TransactionalIDPrefix)
	b.require(k.TransactionalIDPrefix != "", join(path, "transactional_id_prefix"), "must not be empty")
	b.require(k.TransactionTimeout >= time.Second, join(path, "transaction_timeout"), "%s is too short; give 1s or more",
		k.TransactionTimeout)
	b.positive(join(path, "request_timeout"), k.RequestTimeout)
	b.count(join(path, "position_replication_factor"), k.PositionReplication, false)
	t := join(path, "create_topics")
	b.count(join(t, "partitions"), k.CreateTopics.Partitions, true)
	b.count(join(t, "replication_factor"), k.CreateTopics.ReplicationFactor, true)
	for i, g := range k.CreateTopics.Groups {
		group := index(join(t, "groups"), i)
		b.count(join(group, "partitions"), g.Partitions, true)
		b.count(join(group, "replication_factor"), g.ReplicationFactor, true)
		for _, l := range []struct {
			key  string
			list []string
		}{{"include", g.Include}, {"exclude", g.Exclude}} {
			for j, pattern := range l.list {
				_, err := javaregex.Compile(pattern)
				b.require(err == nil, index(join(group, l.key), j), "%v", notRegex(err))
			}
		}
	}
}

func (b *builder) sasl(path string, s *SASL) {
	userSet := s.User != "" || !s.Password.IsZero()
	tokenSet := !s.Token.IsZero() || s.TokenURL != "" || s.ClientID != "" || !s.ClientSecret.IsZero()
	switch s.Mechanism {
	case "":
		b.require(!userSet && !tokenSet, join(path, "mechanism"),
			"is required with the other keys of the section; for instance SCRAM-SHA-512")
	case "OAUTHBEARER":
		b.require(!userSet, join(path, "user"), "OAUTHBEARER has no user and password; give token, or token_url with "+
			"client_id and client_secret")
		b.require(s.Token.IsZero() != (s.TokenURL == ""), join(path, "token"),
			"OAUTHBEARER needs either token, or token_url with client_id and client_secret")
		b.require(s.TokenURL == "" || s.ClientID != "" && !s.ClientSecret.IsZero(), join(path, "token_url"),
			"needs client_id and client_secret")
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		b.require(s.User != "", join(path, "user"), "is required with %s", s.Mechanism)
		b.require(!s.Password.IsZero(), join(path, "password"), "is required with %s", s.Mechanism)
		b.require(!tokenSet, path, "%s has no token; take token, token_url, client_id and client_secret out, or use "+
			"OAUTHBEARER", s.Mechanism)
	}
}

// maxRecentEvents takes 3.2 GB.
const maxRecentEvents = 100_000_000

func (b *builder) runtime(path string, c *Connector) {
	limits := join(path, "limits")
	for _, l := range []struct {
		key   string
		value int64
	}{
		{"queue_bytes", int64(c.Limits.QueueBytes)},
		{"batch_records", int64(c.Limits.BatchRecords)}, {"batch_bytes", int64(c.Limits.BatchBytes)},
		{"transaction_bytes", int64(c.Limits.TransactionBytes)}, {"transaction_rows", int64(c.Limits.TransactionRows)},
	} {
		b.require(l.value > 0, join(limits, l.key), "%d must be above 0", l.value)
	}
	b.require(c.Events.Recent >= 0 && c.Events.Recent <= maxRecentEvents, path+".events.recent",
		"%d must be between 0 and %d", c.Events.Recent, maxRecentEvents)
	b.require(c.Events.ScanRate >= 0, path+".events.scan_rate", "%d must not be negative", c.Events.ScanRate)
	b.require(c.Heartbeat.Interval >= 0, path+".heartbeat.interval", "%s must not be negative", c.Heartbeat.Interval)
	b.topicWord(path+".heartbeat.topic_prefix", c.Heartbeat.TopicPrefix)
	letters := path + ".errors.dead_letter.topic"
	b.topicWord(letters, c.Errors.DeadLetter.Topic)
	b.require(len(c.Errors.DeadLetter.Topic) <= 249, letters, "is too long for a topic's name")
	b.require(c.DeadLetterTopic() != c.PositionTopic(), letters, "%s is the topic of the connector's position",
		c.DeadLetterTopic())
	b.require(c.Retry.MaxAttempts >= -1, path+".retry.max_attempts", "%d must be -1 (without end) or more",
		c.Retry.MaxAttempts)
	b.positive(path+".retry.initial", c.Retry.Initial)
	b.require(c.Retry.Max >= c.Retry.Initial, path+".retry.max", "%s is below initial, %s", c.Retry.Max, c.Retry.Initial)
}

func (b *builder) positive(path string, d time.Duration) {
	b.require(d > 0, path, "%s must be above 0", d)
}

// count is a number of partitions or replicas: at least 1, or -1 for the
// default, or 0 when it may be unset.
func (b *builder) count(path string, n int, mayBeUnset bool) {
	b.require(n >= 1 || n == -1 || n == 0 && mayBeUnset, path, "%d must be 1 or more, or -1 for the default", n)
}

func (b *builder) address(path, text string) {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		var n int
		if n, err = strconv.Atoi(port); err == nil && (n < 0 || n >= 1<<16) {
			err = strconv.ErrRange
		}
	}
	b.require(err == nil, path, "%q is not an address; write host:port", text)
}

// loopback does not resolve names other than localhost: what they mean may change.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err != nil || host == "localhost" || ip != nil && ip.IsLoopback()
}

// hooks runs the checks of other packages.
func (b *builder) hooks(path string, c *Connector) {
	for _, check := range b.Checks {
		b.hookError(path, check(c))
	}
}

func (b *builder) hookError(path string, err error) {
	if err == nil {
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			b.hookError(path, one)
		}
		return
	}
	for cause := err; cause != nil; {
		if f, ok := cause.(*FieldError); ok { //nolint:errorlint // the chain is walked step by step
			b.reject(join(path, f.Path), "%v", f.Err)
			return
		}
		w, ok := cause.(interface{ Unwrap() error })
		if !ok {
			break
		}
		cause = w.Unwrap()
	}
	b.reject(path, "%v", err)
}
