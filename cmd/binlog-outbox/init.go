package main

import (
	"bytes"
	"embed"
	"fmt"
	"net"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/node"
	"github.com/binlog-outbox/binlog-outbox/position"
)

//go:embed templates
var templates embed.FS

// beginning is what init writes a connector's beginning for.
type beginning struct {
	Port                                                                int
	Flavor, Host, Database, Table, User, From, Name, Brokers, Principal string

	// What follows from these.
	Position, TransactionalID, DeadLetter, Topics string
}

func newInit(p *program) *cobra.Command {
	b := beginning{}
	only := ""
	c := &cobra.Command{
		Use: "init", Short: "Print SQL, Kafka ACLs and a configuration to start with", Args: cobra.NoArgs,
		Long: "Print what a first connector needs, and change nothing: SQL for an outbox table and for the\n" +
			"connector's user, the commands for its Kafka ACLs, and a configuration. Look at each before you\n" +
			"use it: passwords and hosts are yours to fill in. validate --probe says what is still missing.\n\n" +
			"  binlog-outbox init --only sql | mysql -h db.example.internal -u root -p\n" +
			"  binlog-outbox init --only config > binlog-outbox.yaml",
		RunE: func(*cobra.Command, []string) error {
			t, err := template.New("").Funcs(template.FuncMap{"split": func(s string) []string {
				return strings.Split(s,
					",")
			}}).ParseFS(templates, "templates/*")
			if err != nil {
				return err
			}
			if err := b.check(); err != nil {
				return &usageError{err: err}
			}
			if err := b.complete(t); err != nil {
				return err
			}
			parts := []string{"sql", "acls", "config"}
			switch only {
			case "":
			case "sql", "acls", "config":
				parts = []string{only}
			default:
				return &usageError{err: fmt.Errorf("--only %s is not possible; sql, acls and config are", only)}
			}
			for i, part := range parts {
				if i > 0 {
					_, _ = fmt.Fprintln(p.stdout) // the next write says
				}
				if err := t.ExecuteTemplate(p.stdout, part, b); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&b.Flavor, "flavor", string(position.MySQL), "the `database`: mysql or mariadb")
	f.StringVar(&b.Host, "host", "mysql.example.internal", "`host` of the database")
	f.IntVar(&b.Port, "port", 3306, "`port` of the database")
	f.StringVar(&b.Database, "database", "shop", "`name` of the outbox table's database")
	f.StringVar(&b.Table, "table", "outbox", "`name` of the outbox table")
	f.StringVar(&b.User, "user", "outbox_cdc", "`name` of the connector's user in the database")
	f.StringVar(&b.From, "from", "%", "`host` or pattern from which that user may connect")
	f.StringVar(&b.Name, "name", "orders-outbox", "`name` of the connector")
	f.StringVar(&b.Brokers, "brokers", "kafka-1.example.internal:9092", "`addresses` of Kafka, separated by commas")
	f.StringVar(&b.Principal, "principal", "User:outbox-cdc", "`principal` of the connector in Kafka")
	f.StringVar(&only, "only", "", "one `part` alone: sql, acls or config")
	return c
}

// What may stand between quotes in each of the languages without being quoted. A name
// beyond that is possible in the configuration, and not here.
var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_$-]{1,64}$`)
	plainHost = regexp.MustCompile(`^[A-Za-z0-9_.:%/-]{1,255}$`)
	plainList = regexp.MustCompile(`^[A-Za-z0-9_.:,\[\]-]{1,1000}$`)
	principal = regexp.MustCompile(`^[A-Za-z]+:[A-Za-z0-9_.@=, *-]{1,255}$`)
)

func (b *beginning) check() error {
	if b.Flavor != string(position.MySQL) && b.Flavor != string(position.MariaDB) {
		return fmt.Errorf("--flavor %s is not possible; mysql and mariadb are", b.Flavor)
	}
	if host, port, err := net.SplitHostPort(b.Host); err == nil {
		return fmt.Errorf("--host %s names a port too: write --host %s --port %s", b.Host, host, port)
	}
	if b.Port < 1 || b.Port > 65535 {
		return fmt.Errorf("--port %d is not possible; ports are 1 to 65535", b.Port)
	}
	for _, v := range []struct {
		flag, value string
		plain       *regexp.Regexp
	}{
		{"host", b.Host, plainHost}, {"database", b.Database, plainName}, {"table", b.Table, plainName},
		{"user", b.User, plainName}, {"from", b.From, plainHost},
		{"name", b.Name, plainName}, {"brokers", b.Brokers, plainList}, {"principal", b.Principal, principal},
	} {
		if !v.plain.MatchString(v.value) {
			return fmt.Errorf("--%s %q has characters that would need quoting; take a plain one and change it in the output",
				v.flag, v.value)
		}
	}
	return nil
}

// complete takes the names from the configuration that is printed, which must be valid.
func (b *beginning) complete(t *template.Template) error {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, "config", b); err != nil {
		return err
	}
	cfg, err := (&config.Builder{KeepReferences: true,
		Checks: []config.Check{node.CheckRouting}}).Build(config.YAML("init", text.Bytes()))
	if err != nil {
		return fmt.Errorf("the configuration to start with is not valid: %w", err)
	}
	c := &cfg.Connectors[0]
	b.Position, b.DeadLetter = c.PositionTopic(), c.DeadLetterTopic()
	b.TransactionalID = strings.TrimSuffix(b.Position, ".position")
	b.Topics, _, _ = strings.Cut(c.Outbox.RouteTopic, "$")
	return nil
}
