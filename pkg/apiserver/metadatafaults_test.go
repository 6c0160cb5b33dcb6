package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is wrong in the metadata of a PUT is refused, and reported once. A kube-apiserver v1.36.3 refuses the same, and
// reports a fault as often as its rules look at it, up to four times.
func TestCausesOfWrongMetadata(t *testing.T) {
	t.Parallel()
	a := asker{plain("admin"), start(t, nil)}
	for _, c := range []struct {
		path, more string
		plain      bool // finalizers may lack a domain
	}{
		{"/api/v1/namespaces/default/configmaps", "", false},
		{"/api/v1/namespaces/default/limitranges", `,"spec":{"limits":[]}`, false},
		{"/api/v1/namespaces/default/resourcequotas", `,"spec":{}`, false},
		{"/apis/coordination.k8s.io/v1/namespaces/default/leases", `,"spec":{}`, true},
		{"/apis/policy/v1/namespaces/default/poddisruptionbudgets", `,"spec":{"maxUnavailable":1}`, true},
	} {
		code, _, made := a.call(t, http.MethodPost, c.path, `{"metadata":{"name":"a"}`+c.more+`}`, "application/json")
		if code != http.StatusCreated {
			t.Fatalf("%s: %d %s", c.path, code, made)
		}
		for metadata, valid := range map[string]bool{`"labels":{"a b":"c"},`: false,
			`"finalizers":["a/b/c"],`: false, `"finalizers":["x"],`: c.plain} {
			code, _, body := a.call(t, http.MethodPut, c.path+"/a?dryRun=All",
				strings.Replace(made, `"metadata":{`, `"metadata":{`+metadata, 1), "application/json")
			if valid {
				if code != http.StatusOK {
					t.Errorf("%s with %s: %d %s", c.path, metadata, code, body)
				}
				continue
			}
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatal(err)
			}
			if code != http.StatusUnprocessableEntity || len(status.Details.Causes) != 1 {
				t.Errorf("%s with %s: %d, want one cause: %s", c.path, metadata, code, body)
			}
		}
	}
}
