// Prints the exported names of packages of a Go module, one `package.Name` per line: constants, variables, functions and types,
// and the methods and fields of types as `package.Type.Name`.
//
//	go run exported.go MODULE@VERSION PACKAGE...
//
// Packages are relative to the module; "." is the package at its root.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

var module, folder string

func main() {
	if len(os.Args) < 3 {
		fatal("usage: go run exported.go MODULE@VERSION PACKAGE...")
	}
	module, _, _ = strings.Cut(os.Args[1], "@")
	out, err := exec.Command("go", "mod", "download", "-json", os.Args[1]).Output()
	if err != nil {
		fatal("go mod download ", os.Args[1], ": ", err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		fatal(err)
	}
	folder = downloaded.Dir
	names := map[string]bool{}
	for _, path := range os.Args[2:] {
		collect(path, names)
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	for _, name := range sorted {
		fmt.Println(name)
	}
}

func collect(path string, names map[string]bool) {
	for _, file := range parse(path) {
		short := path
		if path == "." {
			short = file.Name.Name
		}
		for _, declaration := range file.Decls {
			declared(file, declaration, func(parts ...string) {
				if !slices.ContainsFunc(parts, func(part string) bool { return !ast.IsExported(part) }) {
					names[short+"."+strings.Join(parts, ".")] = true
				}
			})
		}
	}
}

func parse(path string) []*ast.File {
	found, err := build.ImportDir(filepath.Join(folder, path), 0)
	if err != nil {
		fatal(err)
	}
	var files []*ast.File
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(found.Dir, name), nil, 0)
		if err != nil {
			fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func declared(file *ast.File, declaration ast.Decl, add func(...string)) {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Recv == nil {
			add(declaration.Name.Name)
		} else {
			add(receiver(declaration.Recv.List[0].Type), declaration.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					add(name.Name)
				}
			case *ast.TypeSpec:
				add(spec.Name.Name)
				members(spec.Type, func(member string) { add(spec.Name.Name, member) })
				if other, name := aliased(file, spec); other != "" {
					for _, file := range parse(other) {
						for _, declaration := range file.Decls {
							declared(file, declaration, func(parts ...string) {
								if len(parts) == 2 && parts[0] == name {
									add(spec.Name.Name, parts[1])
								}
							})
						}
					}
				}
			}
		}
	}
}

// The import path and the name of the type that an alias stands for, if the type is in a package that is not listed itself.
func aliased(file *ast.File, spec *ast.TypeSpec) (string, string) {
	selector, ok := spec.Type.(*ast.SelectorExpr)
	if !ok || !spec.Assign.IsValid() {
		return "", ""
	}
	for _, imported := range file.Imports {
		path, ok := strings.CutPrefix(strings.Trim(imported.Path.Value, "\""), module+"/")
		name := filepath.Base(path)
		if imported.Name != nil {
			name = imported.Name.Name
		}
		if ok && name == selector.X.(*ast.Ident).Name && !slices.Contains(os.Args[2:], path) {
			return path, selector.Sel.Name
		}
	}
	return "", ""
}

func members(expression ast.Expr, add func(string)) {
	var fields *ast.FieldList
	switch expression := expression.(type) {
	case *ast.StructType:
		fields = expression.Fields
	case *ast.InterfaceType:
		fields = expression.Methods
	default:
		return
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			add(name.Name)
		}
	}
}

func receiver(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.StarExpr:
		return receiver(expression.X)
	case *ast.IndexExpr:
		return receiver(expression.X)
	case *ast.IndexListExpr:
		return receiver(expression.X)
	case *ast.Ident:
		return expression.Name
	}
	return "_"
}

func fatal(message ...any) {
	fmt.Fprintln(os.Stderr, message...)
	os.Exit(1)
}
