package apiserver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/scale"
)

// step is one request and what a real kube-apiserver v1.37.2 answered.
type step struct {
	Name, Method, Path string
	// Type is of the body; Agent is the user agent (nil: "tester/1.0").
	Type, Body string
	Agent      *string
	Code       int
	Message    string
	Causes     []string
	Warnings   []string
	// Fields are the managedFields, sorted: manager, operation, version, subresource, whether they have a time, fields.
	Fields []string
	// Data is what a ConfigMap has.
	Data *contents
}

type contents struct{ Data, Labels map[string]string }

// TestManagedFields replays requests that a real kube-apiserver was asked, creates, updates, patches and applies of all
// sorts, and expects its answers.
func TestManagedFields(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/managedfields.json")
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	if err := json.Unmarshal(raw, &steps); err != nil {
		t.Fatal(err)
	}
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	admin := recordedServer(t, func(c *assemble.Config) {
		s, err := scale.New(c.Catalog, deployments)
		if err != nil {
			t.Fatal(err)
		}
		c.Parts.Behaviours[deployments] = assemble.Behaviour{
			Answers: catalog.Answers{Subresources: map[string]registry.Answerer{"scale": {ReadWriter: s}}}}
	})("admin")
	for _, s := range steps {
		agent := "tester/1.0"
		if s.Agent != nil {
			agent = *s.Agent
		}
		code, header, body := admin.callWith(t, s.Method, s.Path, s.Body,
			http.Header{"Content-Type": {s.Type}, "User-Agent": {agent}})
		got := step{Code: code}
		if code >= 300 {
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatal(err)
			}
			got.Message = status.Message
			if status.Details != nil {
				for _, c := range status.Details.Causes {
					got.Causes = append(got.Causes, fmt.Sprintf("%s %s %s", c.Type, c.Field, c.Message))
				}
			}
		} else {
			got.Fields, got.Data = written(t, body)
		}
		for _, w := range header["Warning"] {
			got.Warnings = append(got.Warnings,
				strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(w, `299 - "`), `"`), `\"`, `"`))
		}
		slices.Sort(got.Causes)
		want := step{Code: s.Code, Message: s.Message, Causes: s.Causes, Warnings: s.Warnings, Fields: s.Fields,
			Data: s.Data}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s %s %s\ngot  %s\nwant %s", s.Name, s.Method, s.Path, s.Body, show(got), show(want))
		}
	}
}

func show(s step) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// written are the managedFields of an answer, and what it has if it is a ConfigMap.
func written(t *testing.T, body string) (fields []string, data *contents) {
	t.Helper()
	var obj struct {
		Kind     string
		Metadata struct {
			ManagedFields []struct {
				Manager, Operation, APIVersion, Subresource string
				Time                                        *metav1.Time
				FieldsV1                                    any
			}
			Labels map[string]string
		}
		Data map[string]string
	}
	if err := json.Unmarshal([]byte(body), &obj); err != nil {
		t.Fatal(err)
	}
	for _, e := range obj.Metadata.ManagedFields {
		timed := "timed"
		if e.Time == nil {
			timed = "untimed"
		}
		set, err := json.Marshal(e.FieldsV1)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, strings.Join(
			[]string{cmp.Or(e.Manager, "-"), e.Operation, e.APIVersion, cmp.Or(e.Subresource, "-"), timed, string(set)},
			" "))
	}
	slices.Sort(fields)
	if obj.Kind == "ConfigMap" && (len(obj.Data) > 0 || len(obj.Metadata.Labels) > 0) {
		data = &contents{Data: map[string]string{}, Labels: map[string]string{}}
		for k, v := range obj.Data {
			data.Data[k] = v
		}
		for k, v := range obj.Metadata.Labels {
			data.Labels[k] = v
		}
	}
	return fields, data
}

// TestUpdatersAreCapped: of more than ten updaters the oldest are joined to one.
func TestUpdatersAreCapped(t *testing.T) {
	t.Parallel()
	url := start(t, nil) + "/api/v1/namespaces/ns/configmaps"
	if code, _, body := call(t, http.MethodPost, url, `{"metadata":{"name":"a"},"data":{"a":"b"}}`, "User-Agent",
		"m"); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	var fields []string
	for i := range 15 {
		code, _, body := call(t, http.MethodPatch, url+"/a", fmt.Sprintf(`{"data":{"k%d":"v"}}`, i), "Content-Type",
			"application/merge-patch+json", "User-Agent", fmt.Sprintf("m%d", i))
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		fields, _ = written(t, body)
	}
	if len(fields) != 10 || !strings.HasPrefix(fields[0], "ancient-changes Update v1 - timed ") {
		t.Errorf("%q", fields)
	}
}
