package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/pkg/referencetest"
	"bonsai/pkg/scheduler/config"
)

// TestIdleFields: what reads the configuration file's fields reads each, except those that are said to have no effect.
func TestIdleFields(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	for _, glob := range []string{"*.go", "../../pkg/scheduler/extender/*.go"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					read[s.Sel.Name] = true
				}
				return true
			})
		}
	}
	idle := config.Idle()
	var walk func(in reflect.Type, at string)
	walk = func(in reflect.Type, at string) {
		for i := range in.NumField() {
			f := in.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			_, excused := idle[at+name]
			switch {
			case f.Name == "TypeMeta", name == "plugins", name == "pluginConfig": // a function of its own reads them
			case name == "": // embedded
				walk(inner, at)
			case read[f.Name] == excused:
				t.Errorf("%s%s: read %t, said to have no effect %t", at, name, read[f.Name], excused)
			case inner.Kind() == reflect.Struct && strings.Contains(inner.PkgPath(), "/config/"):
				walk(inner, at+name+".")
			}
		}
	}
	walk(reflect.TypeFor[configv1.KubeSchedulerConfiguration](), "")
}

// TestReferenceConfiguration: docs/reference has the fields of the configuration file as they are.
func TestReferenceConfiguration(t *testing.T) {
	t.Parallel()
	effects := map[string]string{}
	for path, why := range config.Idle() {
		effects[path] = "none: " + why
	}
	referencetest.Configuration(t, "kube-scheduler",
		"KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1", "./cmd/kube-scheduler",
		"The log does not name the fields without effect (`none`).",
		referencetest.Fields(config.Default(), "json", "profiles[].plugins"), effects)
}
