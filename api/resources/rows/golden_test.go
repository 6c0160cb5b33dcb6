package rows_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
)

// The golden files were compared with the answers of a real kube-apiserver v1.37.2 when they were written: rewrite
// them with -update only for a change that Kubernetes makes, too.
var update = flag.Bool("update", false, "rewrite the golden files")

// documents returns the YAML documents of a file below testdata as JSON.
func documents(t *testing.T, name string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var docs [][]byte
	for i, d := range strings.Split(string(raw), "\n---\n") {
		j, err := yaml.YAMLToJSON([]byte(d))
		if err != nil {
			t.Fatalf("%s, document %d: %v", name, i, err)
		}
		docs = append(docs, j)
	}
	return docs
}

// eachFile runs a test on each file of documents whose name begins with prefix: "create.yaml", "create-node.yaml" of
// one group.
func eachFile(t *testing.T, prefix string, test func(t *testing.T, name string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", prefix+"*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", prefix, err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// golden compares blocks of text with a file, block by block.
func golden(t *testing.T, name string, got []string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	const between = "\n---\n"
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(got, between)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(raw), "\n"), between)
	if len(want) != len(got) {
		t.Fatalf("%s has %d blocks, want %d", name, len(want), len(got))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s, block %d:\n--- got\n%s\n--- want\n%s", name, i, got[i], want[i])
		}
	}
}

func rowFor(t *testing.T, doc []byte) *resources.Row {
	t.Helper()
	var m metav1.TypeMeta
	if err := json.Unmarshal(doc, &m); err != nil {
		t.Fatal(err)
	}
	all := rows.All()
	i := slices.IndexFunc(all, func(r resources.Row) bool {
		return r.GVK == schema.FromAPIVersionAndKind(m.APIVersion, m.Kind)
	})
	if i < 0 {
		t.Fatalf("no row for %s %s", m.APIVersion, m.Kind)
	}
	return &all[i]
}

func decode(t *testing.T, row *resources.Row, doc []byte) runtime.Object {
	t.Helper()
	v := row.ServedVersions()[0]
	return toHub(t, v, v.New(), func(obj any) {
		if err := json.Unmarshal(doc, obj); err != nil {
			t.Fatal(err)
		}
	})
}

// outcome is what a client sees: the errors, or else the object; and warnings.
func outcome(t *testing.T, row *resources.Row, obj runtime.Object, errs field.ErrorList, warnings []string) string {
	t.Helper()
	lines := make([]string, 0, len(errs)+len(warnings))
	for _, e := range errs {
		lines = append(lines, "error: "+e.Error())
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w)
	}
	slices.Sort(lines)
	if len(errs) == 0 {
		out, err := yaml.Marshal(stored(t, row, obj))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSuffix(string(out), "\n"))
	}
	return strings.Join(lines, "\n")
}

// stored is obj as storage brings it back, whose protobuf does not tell empty lists from none.
func stored(t *testing.T, row *resources.Row, obj runtime.Object) runtime.Object {
	t.Helper()
	type message interface {
		Marshal() ([]byte, error)
		Unmarshal(raw []byte) error
	}
	raw, err := obj.(message).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	if err := out.(message).Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	call(row.Decoded, out)
	return out
}

func TestCreate(t *testing.T) {
	t.Parallel()
	eachFile(t, "create", testCreate)
}

func testCreate(t *testing.T, name string) {
	var got []string
	for _, doc := range documents(t, name+".yaml") {
		row := rowFor(t, doc)
		obj, s := decode(t, row, doc), row.Strategy
		call(s.Default, obj)
		var warnings []string
		if s.EarlyWarnings != nil {
			warnings = s.EarlyWarnings(obj)
		}
		call(s.PrepareCreate, obj)
		var errs field.ErrorList
		if s.Validate != nil {
			errs = s.Validate(obj)
		}
		if s.Warnings != nil {
			warnings = append(warnings, s.Warnings(obj, nil)...)
		}
		call(s.Canonicalize, obj)
		if row.Deprecated != "" {
			warnings = append(warnings, row.Deprecated)
		}
		got = append(got, outcome(t, row, obj, errs, warnings))
	}
	golden(t, name+".golden", got)
}

func call(f func(runtime.Object), obj runtime.Object) {
	if f != nil {
		f(obj)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	eachFile(t, "update", testUpdate)
}

func testUpdate(t *testing.T, name string) {
	var got []string
	for i, doc := range documents(t, name+".yaml") {
		var c struct {
			Old, Patch  json.RawMessage
			Subresource string
		}
		if err := json.Unmarshal(doc, &c); err != nil {
			t.Fatal(err)
		}
		row := rowFor(t, c.Old)
		changed, err := jsonpatch.MergePatch(c.Old, c.Patch)
		if err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
		s := row.Strategy
		if c.Subresource != "" {
			k := slices.IndexFunc(row.Subresources, func(s resources.Subresource) bool {
				return s.Name == c.Subresource
			})
			s = *row.Subresources[k].Strategy
		}
		obj, old := decode(t, row, changed), decode(t, row, c.Old)
		call(s.Default, obj)
		if s.PrepareUpdate != nil {
			s.PrepareUpdate(obj, old)
		}
		var errs field.ErrorList
		if s.ValidateUpdate != nil {
			errs, _ = s.ValidateUpdate(obj, old)
		}
		moves := s.SpecChanged != nil && s.SpecChanged(obj, old)
		got = append(got, fmt.Sprintf("generation moves: %t\n%s", moves, outcome(t, row, obj, errs, nil)))
	}
	golden(t, name+".golden", got)
}

func TestTables(t *testing.T) {
	t.Parallel()
	eachFile(t, "tables", testTables)
}

func testTables(t *testing.T, name string) {
	now := time.Date(2026, 11, 21, 11, 16, 0, 0, time.UTC)
	var got []string
	for _, doc := range documents(t, name+".yaml") {
		row := rowFor(t, doc)
		obj := decode(t, row, doc)
		call(row.Strategy.Default, obj)
		obj.(metav1.Object).SetCreationTimestamp(metav1.NewTime(now.Add(-5 * time.Minute)))
		var words []string
		for i, c := range row.Cells(obj, now) {
			words = append(words, fmt.Sprintf("%s: %v", row.Columns[i].Name, c))
		}
		got = append(got, row.Resource+"\n"+strings.Join(words, "\n"))
	}
	golden(t, name+".golden", got)
}

// TestColumns pins keys in storage, and columns' names, types, formats and priorities; descriptions are the API's own
// documentation.
func TestColumns(t *testing.T) {
	t.Parallel()
	var got []string
	for _, row := range rows.All() {
		lines := []string{strings.TrimSpace(row.GroupResource().String() + " " + row.StoragePath)}
		for _, c := range row.Columns {
			if c.Description == "" {
				t.Errorf("%s: column %s has no description", row.Resource, c.Name)
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", c.Name, c.Type, c.Priority, c.Format)))
		}
		got = append(got, strings.Join(lines, "\n"))
	}
	golden(t, "columns.golden", got)
}
