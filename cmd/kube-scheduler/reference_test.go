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
	idle := map[string]bool{}
	for _, f := range config.IdleFields(config.Default()) {
		idle[f.Name] = true
	}
	var walk func(in reflect.Type, at string)
	walk = func(in reflect.Type, at string) {
		for i := range in.NumField() {
			f := in.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
				inner = inner.Elem()
			}
			excused := idle[at+name]
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
	effects := map[string]string{"leaderElection.resourceLock": "limited: the lock is a Lease (`leases`)"}
	for _, f := range config.IdleFields(config.Default()) {
		effects[f.Name] = "none: " + f.Why
	}
	referencetest.Configuration(t, "kube-scheduler",
		"KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1", "./cmd/kube-scheduler",
		"The log names a field without effect (`none`) that is set to something else than its default.",
		referencetest.Fields(config.Default(), "json", "profiles[].plugins"), effects)
}
