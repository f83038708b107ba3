package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
)

func newConfig(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Show, explain and convert configurations",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigShow(p), newConfigReference(p), newConfigConvert(p))
	return c
}

func newConfigShow(p *program) *cobra.Command {
	effective := false
	c := &cobra.Command{
		Use:   "show [CONNECTOR.json ...]",
		Short: "Print the configuration, with secrets masked",
		Long: "Print what is configured by files, environment and flags together. References such as\n" +
			"${file:...} are shown as they are written, and are not followed; other secrets are \"***\".",
		RunE: func(_ *cobra.Command, args []string) error {
			asJSON, err := p.json()
			if err != nil {
				return err
			}
			cfg, err := p.build(&config.Builder{KeepReferences: true}, args)
			if err != nil {
				return err
			}
			text, err := cfg.Show(effective)
			if err == nil && asJSON {
				text, err = yaml.YAMLToJSON(text)
				text = append(bytes.TrimSpace(text), '\n')
			}
			if err == nil {
				_, err = p.stdout.Write(text)
			}
			return err
		},
	}
	c.Flags().BoolVar(&effective, "effective", false, "print defaults too")
	return c
}

func newConfigReference(p *program) *cobra.Command {
	markdown := false
	c := &cobra.Command{
		Use:   "reference",
		Short: "Print every setting with its default, its meaning and the Debezium key it replaces",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text := config.Reference()
			if markdown {
				text = config.ReferencePage()
			}
			_, err := fmt.Fprint(p.stdout, text)
			return err
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print a page in Markdown instead of YAML")
	return c
}

func newConfigConvert(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "convert [--worker WORKER.properties] CONNECTOR.json ...",
		Short: "Turn Debezium connector files into our configuration",
		Long: "Turn Debezium connector files over. The configuration goes to standard output, and to standard\n" +
			"error a line for every key: taken, default (it is so anyway), ignored (nobody can tell the\n" +
			"difference), unsupported or unknown. With one of the last two nothing is printed and the exit\n" +
			"code is 78.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return p.convertFiles(args) },
	}
}

// conversionJSON is the answer of convert as JSON.
type conversionJSON struct {
	Config string     `json:"config"`
	Keys   []lineJSON `json:"keys"`
}

type lineJSON struct {
	File    string `json:"file"`
	Key     string `json:"key"`
	Outcome string `json:"outcome"`
	Setting string `json:"setting,omitempty"`
	Text    string `json:"text,omitempty"`
}

func (p *program) convertFiles(args []string) error {
	asJSON, err := p.json()
	if err != nil {
		return err
	}
	c, refused := p.convert(args)
	answer := conversionJSON{Keys: []lineJSON{}}
	for _, l := range c.Lines {
		answer.Keys = append(answer.Keys, lineJSON{l.File, l.Key, l.Outcome.String(), l.Setting, l.Text})
		if !asJSON && (refused == nil || l.Outcome != debezium.Unsupported && l.Outcome != debezium.Unknown) {
			p.warn(l.String())
		}
	}
	if refused != nil {
		if asJSON {
			if err := p.printJSON(answer); err != nil {
				return err
			}
		}
		return refused
	}
	p.referSecrets(c)
	cfg, err := (&config.Builder{KeepReferences: true}).Build(c.Layer())
	if err != nil {
		return err
	}
	text, err := cfg.Show(false)
	if err != nil {
		return err
	}
	if asJSON {
		answer.Config = string(text)
		return p.printJSON(answer)
	}
	_, err = p.stdout.Write(text)
	return err
}

// secretsFile is where convert says that passwords should go.
const secretsFile = "/etc/binlog-outbox/secrets.properties"

// referSecrets puts references in the place of passwords that stand in the files:
// what is printed is copied, mailed and committed.
func (p *program) referSecrets(c *debezium.Conversion) {
	names := map[string]string{}
	for _, s := range c.Settings {
		if prefix, ok := strings.CutSuffix(s.Path, "].name"); ok {
			names[prefix+"]."] = fmt.Sprint(s.Value) + "."
		}
	}
	for i, s := range c.Settings {
		text, ok := s.Value.(string)
		if !ok || text == "" || !config.IsSecret(s.Path) || config.NewSecret(text).Reference() == text {
			continue
		}
		key := s.Path
		for prefix, name := range names {
			if rest, ok := strings.CutPrefix(key, prefix); ok {
				key = name + rest
			}
		}
		c.Settings[i].Value = "${file:" + secretsFile + ":" + key + "}"
		p.warn(fmt.Sprintf("%s: %s: the value itself is not printed; put it into %s as %s=...", s.Origin.File, s.Origin.Key,
			secretsFile, key))
	}
}
