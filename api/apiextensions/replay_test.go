package apiextensions

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/apiextensions/referencetest"
)

var reference = referencetest.AddFlags()

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// base is what every definition of the test starts from.
	base = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
		"spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
			"properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "b": {"type": "boolean"}, "num": {"type": "number"}, "o": {"type": "object"},
			"date": {"type": "string", "format": "date"}, "l": {"type": "array", "items": {"type": "string"}},
			"m": {"type": "object", "additionalProperties": {"type": "string"}}, "s1": {"type": "string"}, "s2": {"type": "string"},
			"s3": {"type": "string"}, "s4": {"type": "string"}, "s5": {"type": "string"}, "s6": {"type": "string"}}}}}}}]}}`
)

// replayed is a definition and what was asked about it: creation, or, with Old, an update.
type replayed struct {
	Name    string           `json:"name"`
	Old     *json.RawMessage `json:"old,omitempty"`
	Patch   *json.RawMessage `json:"patch,omitempty"`
	Version map[string]any   `json:"version,omitempty"` // added to the base's version
	Schema  map[string]any   `json:"schema,omitempty"`  // of the base's version
	Sub     string           `json:"sub,omitempty"`
}

// object is the definition; patch may be nil.
func (r *replayed) object(t *testing.T, patch *json.RawMessage, changed bool) map[string]any {
	t.Helper()
	raw := []byte(base)
	if patch != nil {
		var err error
		if raw, err = jsonpatch.MergePatch(raw, *patch); err != nil {
			t.Fatal(err)
		}
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if !changed {
		return out
	}
	if r.Version != nil || r.Schema != nil {
		version := out["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		for k, v := range r.Version {
			version[k] = v
		}
		if r.Schema != nil {
			version["schema"] = map[string]any{"openAPIV3Schema": r.Schema}
		}
	}
	return out
}

// TestRecord asks a real API server, when it is told of one, and keeps its answers.
func TestRecord(t *testing.T) {
	server := reference.Server()
	if server == nil {
		t.Skip("SKIPPED: no -reference")
	}
	for _, file := range files {
		var all []replayed
		referencetest.Read(t, "testdata/"+file, &all)
		answers := map[string]referencetest.Answer{}
		for _, r := range all {
			answers[r.Name] = r.record(t, server)
		}
		referencetest.Write(t, "testdata/answers/"+file, answers)
	}
}

var files = [...]string{"definitions.yaml", "more.yaml", "rules.yaml"}

func (r *replayed) record(t *testing.T, server *referencetest.Server) referencetest.Answer {
	t.Helper()
	ask := func(method, path string, body any) referencetest.Answer {
		t.Helper()
		a, err := server.Ask(method, path, body)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		return a
	}
	if r.Old == nil {
		return ask(http.MethodPost, definitions+"?dryRun=All", r.object(t, r.Patch, true))
	}
	old := r.object(t, r.Old, false)
	name := old["metadata"].(map[string]any)["name"].(string)
	if a := ask(http.MethodPost, definitions, old); a.Code != http.StatusCreated {
		t.Fatalf("%s: %+v", r.Name, a)
	}
	established := func(a referencetest.Answer) bool {
		raw, _ := json.Marshal(a.Object)
		var crd apiextensionsv1.CustomResourceDefinition
		_ = json.Unmarshal(raw, &crd)
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	}
	if err := server.Wait(definitions+"/"+name, established); err != nil {
		t.Fatal(err)
	}
	now := ask(http.MethodGet, definitions+"/"+name, nil)
	next := r.object(t, r.Patch, true)
	next["metadata"].(map[string]any)["resourceVersion"] = now.Object["metadata"].(map[string]any)["resourceVersion"]
	path := definitions + "/" + name
	if r.Sub != "" {
		path += "/" + r.Sub
	}
	a := ask(http.MethodPut, path+"?dryRun=All", next)
	ask(http.MethodDelete, definitions+"/"+name, nil)
	if err := server.Wait(definitions+"/"+name, func(a referencetest.Answer) bool {
		return a.Code == http.StatusNotFound
	}); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestReplay: our functions say what a real API server said.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, file := range files {
		var all []replayed
		answers := map[string]referencetest.Answer{}
		referencetest.Read(t, "testdata/"+file, &all)
		referencetest.Read(t, "testdata/answers/"+file, &answers)
		for _, r := range all {
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				want, ok := answers[r.Name]
				if !ok {
					t.Fatal("no answer: record it")
				}
				compare(t, r.ask(t), want)
			})
		}
	}
}

// definition is the object as it comes from the decoder; "" or why there is none.
func (r *replayed) definition(t *testing.T, patch *json.RawMessage, changed bool) (*definition, string) {
	t.Helper()
	raw, err := json.Marshal(r.object(t, patch, changed))
	if err != nil {
		t.Fatal(err)
	}
	var crd definition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return nil, err.Error()
	}
	Default(&crd)
	return &crd, ""
}

// ask answers as the generic registry does with our functions.
func (r *replayed) ask(t *testing.T) referencetest.Answer {
	t.Helper()
	crd, bad := r.definition(t, r.Patch, true)
	if bad != "" {
		return referencetest.Answer{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest}
	}
	var errs field.ErrorList
	out := referencetest.Answer{Code: http.StatusCreated}
	if r.Old == nil {
		prepareCreate(crd)
		errs = Validate(crd)
		out.Warnings = warnings(crd, nil)
	} else {
		out.Code = http.StatusOK
		old, _ := r.definition(t, r.Old, false)
		prepareCreate(old)
		old.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		if r.Sub == "status" {
			prepareStatusUpdate(crd, old)
			errs = validateStatusUpdate(crd, old)
		} else {
			prepareUpdate(crd, old)
			errs = validateUpdate(crd, old)
			out.Warnings = warnings(crd, old)
		}
	}
	if len(errs) > 0 {
		status := apierrors.NewInvalid(
			apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition").GroupKind(), crd.Name,
			errs).Status()
		out = referencetest.Answer{Code: int(status.Code), Reason: status.Reason, Causes: status.Details.Causes}
		referencetest.Sort(out.Causes)
	}
	return out
}

func compare(t *testing.T, got, want referencetest.Answer) {
	t.Helper()
	// Messages list the causes in an order that is not always the same; stored objects are the business of other tests.
	want.Message, want.Object = "", nil
	if want.Code >= 400 {
		want.Warnings, got.Warnings = nil, nil
	}
	slices.Sort(want.Warnings)
	own := func(c metav1.StatusCause) bool {
		return c.Field != "metadata.labels" &&
			!(c.Field == "metadata.name" && strings.Contains(c.Message, "RFC 1123 subdomain"))
	}
	want.Causes = slices.DeleteFunc(want.Causes, func(c metav1.StatusCause) bool { return !own(c) })
	if len(want.Causes) == 0 && want.Code == http.StatusUnprocessableEntity {
		want = referencetest.Answer{Code: got.Code} // all of it is the registry's
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-reference +ours:\n%s", diff)
	}
}
