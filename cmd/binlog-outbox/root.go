package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/node"
)

// Exit codes, which are part of the interface.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitNotFound  = 3
	exitConflict  = 4
	exitUnhealthy = 5
	exitNoLeader  = 6
	exitConfig    = 78 // EX_CONFIG of sysexits.h
)

// defaultConfig is read when nothing else is named and it is there.
const defaultConfig = "/etc/binlog-outbox/binlog-outbox.yaml"

// program is one run of the command: where it writes, and what its flags say.
type program struct {
	stdout, stderr io.Writer
	environ        []string
	probe          prober

	configFile string
	worker     string
	tolerate   bool
	dataDir    string
	set        []string
	output     string
	// ignoreOffset is the flag of run; lines say what became of the keys of its files.
	ignoreOffset bool
	lines        []debezium.Line
	timeout      time.Duration
}

// run executes the command line and returns the exit code. Data goes to stdout,
// logs and errors go to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &program{stdout: stdout, stderr: stderr, environ: os.Environ(), probe: node.Probe}
	return p.run(ctx, args)
}

func (p *program) run(ctx context.Context, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	return p.exit(root.ExecuteContext(ctx))
}

// exit prints an error, one line for each thing that is wrong, and returns the code.
func (p *program) exit(err error) int {
	var usage *usageError
	var said *silentError
	var answer *answerError
	switch problems, isConfig := errors.AsType[config.Problems](err); {
	case err == nil:
		return exitOK
	case isConfig:
		p.warn(problems.Error())
		return exitConfig
	case errors.As(err, &said):
		return said.code
	case errors.As(err, &usage):
		p.warn("binlog-outbox: " + err.Error())
		return exitUsage
	case errors.As(err, &answer):
		p.warn("binlog-outbox: " + err.Error())
		return answer.exitCode()
	default:
		p.warn("binlog-outbox: " + err.Error())
		return exitFailed
	}
}

// warn writes a line for people. When stderr is gone there is nobody to tell.
func (p *program) warn(text string) { _, _ = fmt.Fprintln(p.stderr, text) }

// usageError is a command line that can't be understood.
type usageError struct {
	err error
	// command has the help that is referred to; empty for the program's.
	command string
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v; see %s --help", e.err, cmp.Or(e.command, "binlog-outbox"))
}
func (e *usageError) Unwrap() error { return e.err }

// silentError is a failure that has been told already.
type silentError struct{ code int }

func (e *silentError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "binlog-outbox",
		Short: "Outbox rows from the MySQL or MariaDB binlog to Kafka",
		Long: "binlog-outbox tails the binlog, takes the rows inserted into outbox tables and writes them to\n" +
			"Kafka as Debezium's outbox EventRouter does, with exactly-once delivery.\n\n" +
			"Exit codes: 0 done, 1 failed, 2 wrong command line, 3 not found, 4 conflict or wrong state,\n" +
			"5 not well (status), 6 no leader, 78 bad configuration.",
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return &usageError{err, c.CommandPath()} })
	flags := root.PersistentFlags()
	flags.StringVarP(&p.configFile, "config", "c", "",
		"configuration `file` (BINLOG_OUTBOX_CONFIG; default "+defaultConfig+" if it is there)")
	flags.StringVar(&p.worker, "worker", "", "Kafka Connect worker properties `file`, for connector files")
	flags.BoolVar(&p.tolerate, "tolerate-unknown", false, "pass over unknown keys of connector files, as Debezium does")
	flags.StringVar(&p.dataDir, "data-dir", "", "`directory` of positions and decisions (BINLOG_OUTBOX_DATA_DIR)")
	flags.StringArrayVar(&p.set, "set", nil, "one setting, as `path=value`: --set "+
		"connectors[0].kafka.delivery=at_least_once")
	flags.StringVarP(&p.output, "output", "o", "",
		"output `format` of commands that answer: json, and table or yaml of those that ask a node")
	for _, c := range []*cobra.Command{newRun(p), newInit(p), newValidate(p), newPreview(p), newConfig(p), newStatus(p),
		newConnector(p), newOffset(p), newRows(p), newCluster(p), newLoggers(p), newAudit(p), newEvents(p), newDoctor(p),
		newSettle(p), newMan(), newVersion(p)} {
		root.AddCommand(c)
	}
	checkUsage(root)
	return root
}

// checkUsage makes wrong arguments of a command, and of those below it, a wrong command
// line.
func checkUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{err: err, command: c.CommandPath()}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		checkUsage(sub)
	}
}

func newRun(p *program) *cobra.Command {
	run := &cobra.Command{
		Use:   "run [CONNECTOR.json ...]",
		Short: "Run this node until it is told to stop",
		Long: "Run this node. Connectors come from the configuration file, and from the files that\n" +
			"connect-standalone takes: --worker worker.properties connector.json ...",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := p.load(args)
			if err != nil {
				return err
			}
			comp, err := p.compiler(cfg.Admin.Reach())
			if err != nil {
				return err
			}
			if p.ignoreOffset {
				comp.IgnoreDebeziumOffsets(cfg)
			}
			log := node.NewLogger(cfg.Log, p.stderr)
			tellOfKeys(log, p.lines)
			return runDaemon(c.Context(), cfg, comp, log)
		},
	}
	run.Flags().BoolVar(&p.ignoreOffset, node.IgnoreDebeziumOffset, false,
		"begin without the positions that Debezium has in the worker's offset.storage.file.filename or .topic")
	return run
}

// load builds the configuration from all that the command line and the
// environment name; connectors are files of Debezium's.
func (p *program) load(connectors []string) (*config.Config, error) {
	return p.build(&config.Builder{Checks: []config.Check{node.CheckRouting}}, connectors)
}

func (p *program) build(b *config.Builder, connectors []string) (*config.Config, error) {
	if b.Resolver == nil {
		b.Resolver = &config.Resolver{LookupEnv: p.lookup}
	}
	var layers []config.Layer
	file, err := p.file(len(connectors) > 0 || p.worker != "")
	if err != nil {
		return nil, err
	}
	if file != "" {
		layers = append(layers, config.File(file))
	}
	if len(connectors) > 0 || p.worker != "" {
		c, err := p.convert(connectors)
		if err != nil {
			return nil, err
		}
		p.lines = c.Lines
		layers = append(layers, c.Layer())
	}
	flags, err := p.flagSettings()
	if err != nil {
		return nil, err
	}
	return b.Build(append(layers, config.Environ(p.environ), config.Settings(flags...))...)
}

// file returns the configuration file to read, or "" for none.
func (p *program) file(others bool) (string, error) {
	name := p.configFile
	if name == "" {
		name, _ = p.lookup(config.EnvPrefix + "CONFIG")
	}
	if name != "" || others {
		return name, nil
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return defaultConfig, nil
	}
	for _, e := range p.environ {
		if strings.HasPrefix(e, config.EnvPrefix+"CONNECTORS_") {
			return "", nil
		}
	}
	return "", config.Problems{{Message: "there is no configuration; name a file with --config, or connector files with " +
		"--worker"}}
}

func (p *program) lookup(name string) (string, bool) {
	for i := len(p.environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(p.environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// flagSettings are the settings that flags give.
func (p *program) flagSettings() ([]config.Setting, error) {
	var out []config.Setting
	if p.dataDir != "" {
		out = append(out, config.Setting{Path: "node.data_dir", Value: p.dataDir,
			Origin: config.Origin{File: "command line", Key: "--data-dir"}})
	}
	for _, s := range p.set {
		path, value, ok := strings.Cut(s, "=")
		if !ok {
			return nil, &usageError{err: fmt.Errorf("--set %s is not path=value", s)}
		}
		out = append(out, config.Setting{Path: path, Value: value, Origin: config.Origin{File: "command line", Key: "--set"}})
	}
	return out, nil
}

// compiler makes connectors of what comes over the REST API while the node runs.
// They may refer to what is within reach.
func (p *program) compiler(reach *config.Reach) (*node.Compiler, error) {
	release, _ := p.lookup(config.EnvPrefix + "DEBEZIUM_COMPAT")
	c := &node.Compiler{Release: release, Tolerate: p.tolerate, Environ: p.environ,
		Resolver: &config.Resolver{LookupEnv: p.lookup}, Remote: &config.Resolver{LookupEnv: p.lookup, Reach: reach}}
	if p.worker == "" {
		return c, nil
	}
	f, problem := readFile(p.worker)
	if problem != nil {
		return nil, config.Problems{*problem}
	}
	c.Worker = &f
	return c, nil
}

func readFile(name string) (debezium.File, *config.Problem) {
	data, err := os.ReadFile(name)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return debezium.File{}, &config.Problem{Origin: config.Origin{File: name},
			Message: "reading the file: " + err.Error()}
	}
	return debezium.File{Name: name, Data: data}, nil
}

// convert turns Debezium's files over.
func (p *program) convert(connectors []string) (*debezium.Conversion, error) {
	release, _ := p.lookup(config.EnvPrefix + "DEBEZIUM_COMPAT")
	o := debezium.Options{TolerateUnknown: p.tolerate, Release: release}
	var problems config.Problems
	read := func(name string) debezium.File {
		f, problem := readFile(name)
		if problem != nil {
			problems = append(problems, *problem)
		}
		return f
	}
	if p.worker != "" {
		f := read(p.worker)
		o.Worker = &f
	}
	for _, name := range connectors {
		o.Connectors = append(o.Connectors, read(name))
	}
	if len(problems) > 0 {
		return &debezium.Conversion{}, problems
	}
	return debezium.Convert(o)
}

// json reports whether an answer is wanted as JSON.
func (p *program) json() (bool, error) {
	switch p.output {
	case "", "table", "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, &usageError{err: fmt.Errorf("the output format %q is not possible; json is", p.output)}
}
