package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// A setting that no code reads would promise what nothing does. Each one must be read
// where the node is put together, by the package whose own settings they are, or by a
// method of the configuration that is there for that; that it is validated or written does
// not count.
func TestEverySettingIsRead(t *testing.T) {
	read := map[string]bool{}
	settings := map[string]string{} // type and field, by path
	for _, name := range []string{"config", "router", "converter", "node"} {
		p := check(t, name)
		if name == "config" {
			collect(p.types.Scope().Lookup("Config").Type(), "", settings)
		}
		for _, f := range p.files {
			reads(f, p.info, name == "config", read)
		}
	}
	if len(settings) < 100 {
		t.Fatalf("only %d settings were found", len(settings))
	}
	for path, field := range settings {
		if !read[field] {
			t.Errorf("%s (%s) is read by no code: have something done with it, or take it out", path, field)
		}
	}
}

// exportFiles are the compiled packages that the program is made of, by import path.
var exportFiles = sync.OnceValues(func() (map[string]string, error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./node").Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return exports, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
})

// checked is a package without its tests, with the types of what is in it.
type checked struct {
	types *types.Package
	info  *types.Info
	fset  *token.FileSet
	files []*ast.File
}

// file is the name of the file of a place.
func (p *checked) file(at token.Pos) string { return filepath.Base(p.fset.Position(at).Filename) }

// check type-checks the package in a folder.
func check(t *testing.T, folder string) *checked {
	t.Helper()
	exports, err := exportFiles()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-json=GoFiles", "./"+folder).Output()
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	var listed struct{ GoFiles []string }
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatal(err)
	}
	p := &checked{fset: token.NewFileSet(), info: &types.Info{
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{},
	}}
	for _, name := range listed.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(folder, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, f)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	p.types, err = (&types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}).Check(module+folder, p.fset,
		p.files, p.info)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// collect finds the settings below a section.
func collect(section types.Type, path string, settings map[string]string) {
	named, _ := section.(*types.Named)
	fields, isStruct := section.Underlying().(*types.Struct)
	if !isStruct || named == nil {
		return
	}
	for i := range fields.NumFields() {
		key := reflect.StructTag(fields.Tag(i)).Get("yaml")
		if key == "" {
			continue
		}
		f := fields.Field(i)
		below := f.Type()
		if list, ok := below.(*types.Slice); ok {
			below = list.Elem()
		}
		before := len(settings)
		collect(below, path+key+".", settings)
		if len(settings) == before {
			settings[path+key] = fieldName(named, f.Name())
		}
	}
}

// reads notes the fields of the configuration that a file reads. In the configuration
// itself only what methods of its types read counts.
func reads(file *ast.File, info *types.Info, own bool, read map[string]bool) {
	for _, d := range file.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		if !isFunc || f.Body == nil || own && !methodOfSettings(f) || strings.EqualFold(f.Name.Name, "validate") {
			continue
		}
		written := map[ast.Expr]bool{}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					written[to] = true
				}
			case *ast.SelectorExpr:
				s := info.Selections[n]
				if s == nil || s.Kind() != types.FieldVal || written[n] {
					return true
				}
				if named := owner(s); named != nil && named.Obj().Pkg() != nil {
					read[fieldName(named, n.Sel.Name)] = true
				}
			}
			return true
		})
	}
}

// owner is the struct that declares the field of a selection, which may be embedded.
func owner(s *types.Selection) *types.Named {
	of := s.Recv()
	for _, i := range s.Index() {
		if p, ok := of.(*types.Pointer); ok {
			of = p.Elem()
		}
		named, _ := of.(*types.Named)
		fields, ok := of.Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		if i == s.Index()[len(s.Index())-1] && fields.Field(i).Name() == s.Obj().Name() {
			return named
		}
		of = fields.Field(i).Type()
	}
	return nil
}

func fieldName(of *types.Named, field string) string {
	return strings.TrimPrefix(of.Obj().Pkg().Path(), module) + "." + of.Obj().Name() + "." + field
}

// methodOfSettings reports whether f is an exported method of a section: what the
// program asks the configuration.
func methodOfSettings(f *ast.FuncDecl) bool {
	if f.Recv == nil || !f.Name.IsExported() {
		return false
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported() && name.Name != "Builder"
}
