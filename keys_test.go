package house

import (
	"encoding/json"
	"errors"
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
	"testing"
)

// A setting that no code reads would promise what nothing does. Each one must be read
// where the node is put together, by the package whose own settings they are, or by a
// method of the configuration that is there for that; that it is validated or written does
// not count.
func TestEverySettingIsRead(t *testing.T) {
	exports := exportFiles(t)
	read := map[string]bool{}
	settings := map[string]string{} // type and field, by path
	for _, name := range []string{"config", "router", "converter", "node"} {
		pkg, info, files := check(t, name, exports)
		if name == "config" {
			collect(pkg.Scope().Lookup("Config").Type(), "", settings)
		}
		for _, f := range files {
			reads(f, info, name == "config", read)
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
func exportFiles(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./node").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
}

// check type-checks the package in a folder, without its tests.
func check(t *testing.T, folder string, exports map[string]string) (*types.Package, *types.Info, []*ast.File) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=GoFiles", "./"+folder).Output()
	if err != nil {
		t.Fatalf("listing files: %v", err)
	}
	var listed struct{ GoFiles []string }
	if err := json.Unmarshal(out, &listed); err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range listed.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, err := (&types.Config{Importer: importer.ForCompiler(fset, "gc", open)}).Check(module+folder, fset, files, info)
	if err != nil {
		t.Fatal(err)
	}
	return pkg, info, files
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
