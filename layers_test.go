package arch

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// layer is a set of files of one package, without their .go, which use nothing that is
// declared in a file of a later layer of the package.
type layer struct {
	files string
	what  string
}

// layers are those of the packages that are too large for one look, the lowest first. A
// new file is put into one; an dependency that leads up is a decision, and mostly a wrong one.
var layers = map[string][]layer{
	"ha": {
		{"doc config hclog watch contexts state errors", "configuration, and values that are sent and stored"},
		{"command snapshot fsm directory", "what is replicated, and what becomes of it"},
		{"logstore datadir tls waiting transport", "the disk and the network"},
		{"node lead write peer members bootstrap successor takeover status metrics", "one node: leadership, writes, members"},
		{"recover", "a cluster without a node that runs"},
	},
	"node": {
		{"dial logging veil version memorylimit tls webconfig route",
			"parts that know nothing of nodes and connectors at work"},
		{"positions decisions", "a connector's part of the replicated store"},
		{"source sink compiler takeover adopt", "what a connector is made of, and from what"},
		{"observe preview prober health", "a look at a connector's servers, and at a node"},
		{"assemble manager work reach", "the connectors that are here, and run here"},
		{"api apistatus apioperations apioffset apirows apievents search apiconnect", "what the admin server asks"},
		{"node", "start and stop"},
	},
}

// Files of a package use what is declared in their own layer or in a lower one.
func TestLayers(t *testing.T) {
	for folder, rows := range layers {
		level := map[string]int{}
		for i, l := range rows {
			for _, name := range strings.Fields(l.files) {
				level[name+".go"] = i
			}
		}
		p := check(t, folder)
		if len(p.files) != len(level) {
			t.Errorf("package %s has %d files, its layers %d", folder, len(p.files), len(level))
		}
		for _, f := range p.files {
			file := p.file(f.Pos())
			if _, ok := level[file]; !ok {
				t.Errorf("%s/%s is in no layer", folder, file)
				continue
			}
			for _, use := range upwards(p, f, level) {
				t.Errorf("%s/%s uses %s of a higher layer", folder, file, use)
			}
		}
	}
}

// upwards are the functions, methods, types and so on that a file uses and a higher layer
// declares.
func upwards(p *checked, f *ast.File, level map[string]int) []string {
	file := p.file(f.Pos())
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := p.info.Uses[id]
		if o == nil || o.Pkg() != p.types {
			return true
		}
		if _, isPackage := o.(*types.PkgName); isPackage {
			return true
		}
		if from := p.file(o.Pos()); level[from] > level[file] {
			found = append(found, fmt.Sprintf("%s (%s)", o.Name(), from))
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}
