package customresource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/apiextensions/referencetest"
)

var reference = referencetest.AddFlags()

// replayed is a kind of object and what was asked of a real API server about its objects.
type replayed struct {
	Name         string                                      `json:"name"`
	Schema       *apiextensionsv1.JSONSchemaProps            `json:"schema"`
	Subresources *apiextensionsv1.CustomResourceSubresources `json:"subresources,omitempty"`
	Selectable   []apiextensionsv1.SelectableField           `json:"selectableFields,omitempty"`
	Requests     []replayedRequest                           `json:"requests"`
}

// replayedRequest creates an object, or updates one that was stored when nothing was checked.
type replayedRequest struct {
	Create map[string]any `json:"create,omitempty"`
	Old    map[string]any `json:"old,omitempty"`
	Update map[string]any `json:"update,omitempty"`
	Sub    string         `json:"sub,omitempty"`
}

func (k *replayed) crd() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	version := func(name string, schema *apiextensionsv1.JSONSchemaProps,
		storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: storage,
			Subresources: k.Subresources,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}
	}
	stored := version("v1", k.Schema, true)
	stored.SelectableFields = k.Selectable
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.APIVersion, crd.Kind, crd.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition",
		k.Name+"s.replay.example.com"
	crd.Spec.Group, crd.Spec.Scope = "replay.example.com", apiextensionsv1.ClusterScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: k.Name + "s", Singular: k.Name,
		Kind: "K" + k.Name, ListKind: "K" + k.Name + "List"}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		stored,
		version("lax", &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}, false),
	}
	return crd
}

// object completes what a request says of an object.
func (k *replayed) object(from map[string]any, version, name string) map[string]any {
	out := map[string]any{}
	for key, v := range from {
		out[key] = v
	}
	out["apiVersion"], out["kind"] = "replay.example.com/"+version, "K"+k.Name
	meta := map[string]any{"name": name}
	if given, ok := from["metadata"].(map[string]any); ok {
		for key, v := range given {
			meta[key] = v
		}
	}
	out["metadata"] = meta
	return out
}

// TestRecord asks a real API server, when it is told of one, and keeps its answers.
func TestRecord(t *testing.T) {
	server := reference.Server()
	if server == nil {
		t.Skip("SKIPPED: no -reference")
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		var kinds []replayed
		referencetest.Read(t, file, &kinds)
		answers := map[string][]referencetest.Answer{}
		for _, k := range kinds {
			answers[k.Name] = record(t, server, &k)
		}
		referencetest.Write(t, answersOf(file), answers)
	}
}

func answersOf(file string) string {
	return filepath.Join("testdata", "answers", filepath.Base(file))
}

func record(t *testing.T, server *referencetest.Server, k *replayed) (out []referencetest.Answer) {
	t.Helper()
	crd := k.crd()
	crds := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	must := func(a referencetest.Answer, err error) {
		t.Helper()
		if err != nil || a.Code >= 400 {
			t.Fatalf("%s: %+v, %v", k.Name, a, err)
		}
	}
	if a, err := server.Ask(http.MethodDelete, crds+"/"+crd.Name, nil); err != nil || a.Code != 200 && a.Code != 404 {
		t.Fatal(a, err)
	}
	gone := func(a referencetest.Answer) bool { return a.Code == http.StatusNotFound }
	if err := server.Wait(crds+"/"+crd.Name, gone); err != nil {
		t.Fatal(err)
	}
	must(server.Ask(http.MethodPost, crds, crd))
	all := func(version string) string { return "/apis/replay.example.com/" + version + "/" + k.Name + "s" }
	for _, version := range []string{"v1", "lax"} {
		if err := server.Wait(all(version), func(a referencetest.Answer) bool {
			return a.Code == http.StatusOK
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range k.Requests {
		name := fmt.Sprintf("x%d", i)
		var a referencetest.Answer
		var err error
		if r.Create != nil {
			a, err = server.Ask(http.MethodPost, all("v1"), k.object(r.Create, "v1", name))
		} else {
			must(server.Ask(http.MethodPost, all("lax"), k.object(r.Old, "lax", name)))
			if k.Subresources != nil && r.Old["status"] != nil {
				must(server.Ask(http.MethodPut, all("lax")+"/"+name+"/status",
					withVersion(t, server, all("lax")+"/"+name, k.object(r.Old, "lax", name))))
			}
			path := all("v1") + "/" + name
			at := path
			if r.Sub != "" {
				at += "/" + r.Sub
			}
			a, err = server.Ask(http.MethodPut, at,
				withVersion(t, server, all("lax")+"/"+name, k.object(r.Update, "v1", name)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if meta, ok := a.Object["metadata"].(map[string]any); ok {
			for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
				delete(meta, key)
			}
		}
		out = append(out, a)
	}
	return out
}

func withVersion(t *testing.T, server *referencetest.Server, path string, obj map[string]any) map[string]any {
	t.Helper()
	a, err := server.Ask(http.MethodGet, path, nil)
	if err != nil || a.Code != 200 {
		t.Fatal(a, err)
	}
	obj["metadata"].(map[string]any)["resourceVersion"] = a.Object["metadata"].(map[string]any)["resourceVersion"]
	return obj
}

// TestReplay: our functions say what a real API server said.
func TestReplay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var kinds []replayed
		answers := map[string][]referencetest.Answer{}
		referencetest.Read(t, file, &kinds)
		referencetest.Read(t, answersOf(file), &answers)
		for _, k := range kinds {
			t.Run(k.Name, func(t *testing.T) {
				t.Parallel()
				if len(answers[k.Name]) != len(k.Requests) {
					t.Fatalf("%d answers to %d requests: record them", len(answers[k.Name]), len(k.Requests))
				}
				kind, err := compile(k.crd(), "v1")
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range k.Requests {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						compare(t, r.ask(t.Context(), kind, &k, fmt.Sprintf("x%d", i)), answers[k.Name][i])
					})
				}
			})
		}
	}
}

// ask answers as the generic registry does with our functions, without the warnings of other places.
func (r *replayedRequest) ask(ctx context.Context, kind *Type, k *replayed, name string) referencetest.Answer {
	given := r.Create
	if given == nil {
		given = r.Update
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(integers(k.object(given, "v1", name)))}
	unknown, err := kind.Prune(u)
	if err != nil {
		return referencetest.Answer{Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
			Message: fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", u.GetKind(), "v1", u.GetKind(), err)}
	}
	out := referencetest.Answer{Code: http.StatusCreated}
	for _, path := range unknown {
		out.Warnings = append(out.Warnings, fmt.Sprintf("unknown field %q", path))
	}
	kind.Default(u)
	var errs field.ErrorList
	var kept []string
	if r.Create != nil {
		kind.PrepareCreate(u)
		errs = kind.Validate(ctx, u)
	} else {
		out.Code = http.StatusOK
		old := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(integers(k.object(r.Old, "v1", name)))}
		_, _ = kind.Prune(old)
		kind.Default(old)
		if r.Sub == "status" {
			kind.PrepareStatusUpdate(u, old)
			errs, kept = kind.ValidateStatusUpdate(ctx, u, old)
		} else {
			kind.PrepareUpdate(u, old)
			errs, kept = kind.ValidateUpdate(ctx, u, old)
		}
	}
	out.Warnings = append(out.Warnings, kept...)
	if len(errs) > 0 {
		status := apierrors.NewInvalid(u.GroupVersionKind().GroupKind(), name, errs).Status()
		out.Code, out.Reason, out.Message, out.Causes = int(status.Code), status.Reason, status.Message,
			status.Details.Causes
		referencetest.Sort(out.Causes)
		return out
	}
	out.Object = u.Object
	return out
}

// integers makes int64 of the integers in what YAML read, as the API server's decoder does.
func integers(v map[string]any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}

func compare(t *testing.T, got, want referencetest.Answer) {
	t.Helper()
	for _, o := range []map[string]any{got.Object, want.Object} {
		delete(o, "metadata") // the registry's
	}
	own := func(text string) bool { return !strings.HasPrefix(text, `unknown field "metadata.`) }
	want.Warnings = slices.DeleteFunc(want.Warnings, func(w string) bool { return !own(w) })
	want.Causes = slices.DeleteFunc(want.Causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, "RFC 1123 subdomain") && c.Field == "metadata.name"
	})
	if got.Message != "" && len(got.Causes) > 0 {
		got.Message, want.Message = "", "" // in the order of the causes, which is not always the same
	}
	if want.Object != nil {
		want.Object = integers(want.Object)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-reference +ours:\n%s", diff)
	}
}
