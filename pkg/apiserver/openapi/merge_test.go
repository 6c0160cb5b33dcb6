package openapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/openapi"
)

// others are servers behind this one.
type others struct {
	mark string
	v2   []openapi.Remote
	v3   map[schema.GroupVersion]string
	only map[schema.GroupVersion][]byte
}

func (o *others) V2(context.Context) (string, []openapi.Remote)     { return o.mark, o.v2 }
func (o *others) V3(context.Context) map[schema.GroupVersion]string { return o.v3 }
func (o *others) OnlyV2(_ context.Context, gv schema.GroupVersion) (string, []byte) {
	return "only", o.only[gv]
}
func (o *others) Serves(gv schema.GroupVersion) bool { _, ok := o.v3[gv]; return ok }

const widgets = `{"swagger":"2.0","info":{"title":"ext","version":"1"},"paths":{
	"/apis/ext.example.com/v1/widgets":{"get":{"operationId":"listWidget","responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/com.example.Widget"}}}}},
	"/apis/else/":{"get":{"operationId":"mine","responses":{"200":{"description":"OK"}}}}},
	"definitions":{"com.example.Widget":{"type":"object","properties":{"metadata":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}},
	"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":{"type":"object","description":"other"}}}`

func TestRemotes(t *testing.T) {
	t.Parallel()
	ext, apps := schema.GroupVersion{Group: "ext.example.com", Version: "v1"},
		schema.GroupVersion{Group: "apps", Version: "v1"}
	o := &others{}
	s, err := openapi.New(openapi.Config{Catalog: assembletest.Catalog(t, rows.All()), Scheme: scheme.New(),
		Version: "v1.36.0", Remotes: o})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		w := httptest.NewRecorder()
		if ok, err := s.Serve(w, httptest.NewRequest(http.MethodGet, path, nil)); !ok || err != nil {
			t.Fatalf("%s: %v, %v", path, ok, err)
		}
		return w.Body.String()
	}
	alone, index := get("/openapi/v2"), get("/openapi/v3")
	o.mark, o.v2, o.v3 = "1",
		[]openapi.Remote{{Prefix: "/apis/broken/v1/", JSON: []byte("{")},
			{Prefix: "/apis/ext.example.com/v1/", JSON: []byte(widgets)}},
		map[schema.GroupVersion]string{ext: "ABC", apps: "DEF"}
	var doc struct {
		Info        struct{ Title string }
		Paths       map[string]any
		Definitions map[string]struct {
			Description string
			Properties  map[string]struct {
				Ref string `json:"$ref"`
			}
		}
	}
	if err := json.Unmarshal([]byte(get("/openapi/v2")), &doc); err != nil {
		t.Fatal(err)
	}
	meta := "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	ref := strings.TrimPrefix(doc.Definitions["com.example.Widget"].Properties["metadata"].Ref, "#/definitions/")
	if doc.Info.Title != "Kubernetes" || doc.Paths["/apis/ext.example.com/v1/widgets"] == nil ||
		doc.Paths["/apis/else/"] != nil || doc.Paths["/apis/apps/v1/deployments"] == nil ||
		ref == meta || doc.Definitions[ref].Description != "other" || doc.Definitions[meta].Description == "other" {
		t.Errorf("info %v, reference %s, %d paths", doc.Info, ref, len(doc.Paths))
	}
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal([]byte(get("/openapi/v3")), &list); err != nil {
		t.Fatal(err)
	}
	for gv, want := range map[string]string{"apis/ext.example.com/v1": "/openapi/v3/apis/ext.example.com/v1?hash=ABC",
		"apis/apps/v1": "/openapi/v3/apis/apps/v1?hash=DEF"} {
		if got := list.Paths[gv].ServerRelativeURL; got != want {
			t.Errorf("%s: %s", gv, got)
		}
	}
	old, broken := schema.GroupVersion{Group: "old.example.com", Version: "v1"},
		schema.GroupVersion{Group: "broken.example.com", Version: "v1"}
	o.only = map[schema.GroupVersion][]byte{old: []byte(widgets), broken: []byte(`{"paths":7}`)}
	if v3 := get("/openapi/v3/apis/old.example.com/v1"); !strings.Contains(v3, `"openapi":"3.0.0"`) ||
		!strings.Contains(v3, `"components":{"schemas":{"com.example.Widget":`) {
		t.Errorf("of a server without v3: %s", v3)
	}
	w := httptest.NewRecorder()
	if ok, err := s.Serve(w, httptest.NewRequest(http.MethodGet, "/openapi/v3/apis/broken.example.com/v1", nil)); !ok ||
		err == nil || w.Body.Len() > 0 {
		t.Errorf("a broken document: %v, %v, %s", ok, err, w.Body)
	}
	*o = others{}
	if get("/openapi/v2") != alone || get("/openapi/v3") != index {
		t.Error("without other servers the documents are not what they were")
	}
}
