package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rows of ended pods are marked as completed, in lists, gets and watches; the reason is the phase, not the status's
// reason. Other rows have no conditions.
func TestTableConditions(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	pods := url + "/api/v1/namespaces/ns/pods"
	completed := func(reason, message string) []metav1.TableRowCondition {
		return []metav1.TableRowCondition{
			{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
	}
	want := map[string][]metav1.TableRowCondition{
		"ended":   completed("Succeeded", "The pod has completed successfully."),
		"evicted": completed("Failed", "The pod failed."),
		"running": nil, "new": nil,
	}
	for name, status := range map[string]string{
		"ended": `{"phase":"Succeeded"}`, "evicted": `{"phase":"Failed","reason":"Evicted","message":"low"}`,
		"running": `{"phase":"Running"}`, "new": `{}`,
	} {
		body := `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"x"}]}}`
		if code, _, answer := call(t, http.MethodPost, pods, body, "Content-Type",
			"application/json"); code != http.StatusCreated {
			t.Fatalf("%s: %d %s", name, code, answer)
		}
		if code, _, answer := call(t, http.MethodPatch, pods+"/"+name+"/status", `{"status":`+status+`}`,
			"Content-Type", "application/merge-patch+json"); code != http.StatusOK {
			t.Fatalf("%s: %d %s", name, code, answer)
		}
	}
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	rows := func(path string) map[string][]metav1.TableRowCondition {
		_, _, body := call(t, http.MethodGet, path, "", "Accept", asTable)
		var table metav1.Table
		if err := json.Unmarshal([]byte(body), &table); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		got := map[string][]metav1.TableRowCondition{}
		for _, r := range table.Rows {
			got[r.Cells[0].(string)] = r.Conditions
		}
		return got
	}
	if diff := cmp.Diff(want, rows(pods)); diff != "" {
		t.Errorf("list: %s", diff)
	}
	if diff := cmp.Diff(want["evicted"], rows(pods + "/evicted?includeObject=Object")["evicted"]); diff != "" {
		t.Errorf("get: %s", diff)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		pods+"?watch=1&fieldSelector=metadata.name%3Dended", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", asTable)
	resp, err := plain("admin").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var e struct{ Object metav1.Table }
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want["ended"], e.Object.Rows[0].Conditions); diff != "" {
		t.Errorf("watch: %s", diff)
	}
}
