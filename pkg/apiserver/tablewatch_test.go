package apiserver_test

import (
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watched is an object of a watch in another form than its own.
type watched struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Columns  []any `json:"columnDefinitions"`
	Rows     []struct {
		Cells  []any
		Object struct{ Metadata metav1.ObjectMeta }
	}
}

// initialEvents reads the first n events of a streaming list of config maps, the last of which must be a bookmark.
func initialEvents(t *testing.T, url, as string, n int) []watched {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		url+"/api/v1/namespaces/ns/configmaps?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;as="+as+";v=v1;g=meta.k8s.io")
	resp, err := plain("admin").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var all []watched
	for d := json.NewDecoder(resp.Body); len(all) < n; {
		var e struct {
			Type   string
			Object watched
		}
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if (e.Type == "BOOKMARK") != (len(all) == n-1) {
			t.Errorf("%s: event %d is %s", as, len(all), e.Type)
		}
		all = append(all, e.Object)
	}
	return all
}

// A streaming list as a Table: the first event alone has column definitions, and the bookmark that ends the initial
// events is a table with one row, whose object carries the mark. For metadata alone the bookmark is such an object.
func TestInitialEventsInOtherForms(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	for _, name := range []string{"a", "b"} {
		if _, err := client(t, url, "admin", "application/json").CoreV1().ConfigMaps("ns").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range initialEvents(t, url, "Table", 3) {
		if (len(o.Columns) > 0) != (i == 0) || len(o.Rows) != 1 || len(o.Rows[0].Cells) != 3 ||
			o.Metadata.ResourceVersion == "" {
			t.Fatalf("table %d: %+v", i, o)
		}
		m := o.Rows[0].Object.Metadata
		if ended := m.Annotations[metav1.InitialEventsAnnotationKey] == "true"; ended != (i == 2) ||
			m.ResourceVersion != o.Metadata.ResourceVersion {
			t.Errorf("row %d: %+v", i, m)
		}
	}
	last := initialEvents(t, url, "PartialObjectMetadata", 3)[2]
	if last.Kind != "PartialObjectMetadata" || last.Metadata.Annotations[metav1.InitialEventsAnnotationKey] != "true" ||
		last.Metadata.ResourceVersion == "" {
		t.Errorf("bookmark of metadata: %+v", last)
	}
}
