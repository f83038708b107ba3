// Package arch holds the structure of the project to its own rules.
package arch

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/binlog-outbox/binlog-outbox/"

// dependencies says which of our packages a package may import, and why. What is not
// listed is forbidden; a new dependency is a decision and gets its reason here.
var dependencies = map[string]map[string]string{
	"position":   {},
	"javaregex":  {},
	"envelope":   {},
	"schema":     {},
	"schema/ddl": {"schema": "the tables that DDL changes"},
	"converter":  {"schema": "column types decide Connect types"},
	"txn":        {"schema": "a transaction's rows", "position": "its commit position"},
	"router": {
		"javaregex": "route.topic.regex is Java's", "schema": "rows and tables",
		"converter": "the record that a route makes is Connect data",
		"txn":       "records",
	},
	"canal": {"schema": "rows and tables", "schema/ddl": "columns are carried through the DDL of the stream",
		"position": "commit positions and where to resume", "txn": "what it hands on"},
	"kafka": {"position": "a batch is durable together with its position", "txn": "records",
		"envelope": "records of the position topic"},
	"ha": {"position": "positions are replicated and may not go back", "envelope": "commands and snapshots"},
	"config": {"converter": "its modes and converters' options are sections",
		"javaregex": "patterns of tables, topics and servers are Java's", "router": "its options are a section"},
	"debezium": {"config": "connector JSON becomes our configuration",
		"converter": "Java's classes are converters here", "javaregex": "its lists hold Java's patterns"},
	"debezium/offset": {},
	"recent":          {"position": "the transactions that events are of"},
	"docs":            {},
	"admin": {
		"docs": "the page shows the runbooks", "ha": "what it says of cluster, audit and run states is the store's",
		"connector": "what it says of backlog and errors is the connector's",
	},
	"connector": {
		"canal": "the stream's status", "kafka": "batches",
		"position": "where a session begins and what it made durable", "schema": "rows go to the encoder",
		"recent": "where published events went", "txn": "transactions and records",
	},
	"node": {
		"admin":           "it answers what the admin server is asked",
		"canal":           "sources are opened and asked here",
		"config":          "each part's configuration is taken from the tree",
		"connector":       "the connectors that run here",
		"converter":       "a route's formats",
		"debezium/offset": "what Debezium has stored is taken over",
		"debezium":        "connectors that were put over Connect's REST API are JSON of Debezium's",
		"ha":              "leadership decides what runs, the store what there is",
		"kafka":           "sinks are made and brokers asked here",
		"position":        "offsets that operators choose, and what is shown of them",
		"router":          "a connector's route",
		"schema":          "outbox tables are checked before the first row",
		"recent":          "where events went, for the question after one",
		"txn":             "what an observer reads, and records of it",
	},
	"cmd/binlog-outbox": {
		"admin":           "the types of the answers of a node that runs",
		"config":          "what the command line adds to the configuration",
		"debezium":        "connector files on the command line, and their conversion",
		"debezium/offset": "what a worker or its file says of offsets",
		"ha":              "a cluster is recovered and restored without a node that runs",
		"node":            "run, and what commands ask the servers themselves",
		"position":        "the commit positions that preview prints",
		"txn":             "the records that preview prints",
	},
}

// libraries lists the packages at which the types of a library stop.
var libraries = map[string][]string{
	// position wraps the GTID set's text and wire form, and exports none of its types
	"github.com/go-mysql-org/go-mysql": {"canal", "position"},
	"github.com/IBM/sarama":            {"kafka"},
	"github.com/hashicorp/raft":        {"ha"},
	"github.com/spf13/cobra":           {"cmd/binlog-outbox"},
	"github.com/goccy/go-yaml":         {"config", "debezium", "node", "cmd/binlog-outbox"},
}

// pure packages know no I/O and no clocks of the machine's network.
var pure = []string{"position", "envelope", "txn", "schema", "schema/ddl", "router", "converter", "javaregex"}

type pkg struct {
	ImportPath string
	Imports    []string
	GoFiles    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", "./...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	var pkgs []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

func TestDependencies(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		allowed, ours := dependencies[name]
		if !ours {
			if strings.HasPrefix(name, "test/") || strings.HasSuffix(name, "test") || strings.Contains(name, "/internal/") ||
				len(p.GoFiles) == 0 {
				continue
			}
			t.Errorf("package %s has no line in the table of dependencies: say what it may import and why", name)
			continue
		}
		for _, imp := range p.Imports {
			to, inside := strings.CutPrefix(imp, module)
			if inside && allowed[to] == "" && !strings.HasPrefix(to, name+"/") {
				t.Errorf("%s imports %s, which is not one of its dependencies", name, to)
			}
			for lib, stops := range libraries {
				if (imp == lib || strings.HasPrefix(imp, lib+"/")) && !slices.Contains(stops, name) {
					t.Errorf("%s imports %s, whose types stop at %v", name, imp, stops)
				}
			}
			if slices.Contains(pure, name) && slices.Contains([]string{"net", "net/http", "os", "os/exec", "database/sql", "log",
				"log/slog"}, imp) {
				t.Errorf("%s is pure and imports %s", name, imp)
			}
		}
	}
}

// Each package says in one comment what it is.
func TestOnePackageComment(t *testing.T) {
	for _, p := range list(t) {
		dir := strings.TrimPrefix(p.ImportPath, module)
		comments := 0
		for _, f := range p.GoFiles {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f), nil,
				parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				comments++
			}
		}
		if len(p.GoFiles) > 0 && comments != 1 {
			t.Errorf("package %s has %d package comments, want 1", dir, comments)
		}
	}
}

// A replace directive would break "go install module@version".
func TestNoReplace(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "\nreplace") {
		t.Error("go.mod has a replace directive")
	}
}

// Files stay readable in one go.
func TestFileLength(t *testing.T) {
	const most = 600
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_table.go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), "\n"); n > most {
			t.Errorf("%s has %d lines, more than %d: does it have one purpose?", path, n, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
