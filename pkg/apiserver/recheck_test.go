package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is wrong in the metadata of a PUT is refused, and told as often as a kube-apiserver v1.36.3 tells it.
func TestCausesOfWrongMetadata(t *testing.T) {
	t.Parallel()
	a := asker{plain("admin"), start(t, nil)}
	for _, c := range []struct {
		path, more                string
		label, finalizer, unknown int
	}{
		{"/api/v1/namespaces/default/configmaps", "", 4, 2, 2},
		{"/api/v1/namespaces/default/limitranges", `,"spec":{"limits":[]}`, 3, 2, 1},
		{"/api/v1/namespaces/default/resourcequotas", `,"spec":{}`, 3, 1, 1},
		{"/apis/coordination.k8s.io/v1/namespaces/default/leases", `,"spec":{}`, 3, 1, 0},
		{"/apis/policy/v1/namespaces/default/poddisruptionbudgets", `,"spec":{"maxUnavailable":1}`, 2, 1, 0},
	} {
		code, _, made := a.call(t, http.MethodPost, c.path, `{"metadata":{"name":"a"}`+c.more+`}`, "application/json")
		if code != http.StatusCreated {
			t.Fatalf("%s: %d %s", c.path, code, made)
		}
		for metadata, want := range map[string]int{`"labels":{"a b":"c"},`: c.label,
			`"finalizers":["a/b/c"],`: c.finalizer, `"finalizers":["x"],`: c.unknown} {
			code, _, body := a.call(t, http.MethodPut, c.path+"/a?dryRun=All",
				strings.Replace(made, `"metadata":{`, `"metadata":{`+metadata, 1), "application/json")
			if want == 0 {
				if code != http.StatusOK {
					t.Errorf("%s with %s: %d %s", c.path, metadata, code, body)
				}
				continue
			}
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatal(err)
			}
			if code != http.StatusUnprocessableEntity || len(status.Details.Causes) != want {
				t.Errorf("%s with %s: %d, want %d causes: %s", c.path, metadata, code, want, body)
			}
		}
	}
}
