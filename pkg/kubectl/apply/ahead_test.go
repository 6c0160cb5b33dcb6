package apply

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestCreatedMeanwhile: an object that was not there when it was looked for before its turn, and came with one that was
// applied before it, is changed and not created.
func TestCreatedMeanwhile(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	to, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	looked := make(chan struct{})
	answered := 0
	next := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost && strings.Contains(string(body), `"name":"b"`) {
			<-looked // for c, which is before b is created
			resp, err := http.Post(s.URL+"/api/v1/namespaces/default/configmaps", "application/json",
				strings.NewReader(configMap(`{"a":"theirs","z":"1"}`)))
			if err != nil || resp.StatusCode != http.StatusCreated {
				t.Errorf("create the object: %v, %v", resp, err)
			} else {
				resp.Body.Close()
			}
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, r)
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/c") {
			if answered++; answered == 1 {
				close(looked)
			}
		}
	}))
	defer front.Close()
	file := configMap(`{"a":"ours"}`)
	var docs []string
	for _, name := range []string{"a", "b", "c"} {
		docs = append(docs, strings.Replace(file, `"name":"c"`, `"name":"`+name+`"`, 1))
	}
	got, code := writetest.Run(t, newCommand, front.URL, strings.Join(docs, "\n---\n"), "apply", "-f", "-")
	for _, want := range []string{"configmap/a created\n", "configmap/b created\n", "configmap/c configured\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if o := s.Object(live); code != 0 || !strings.Contains(o, `"a":"ours"`) || !strings.Contains(o, `"z":"1"`) {
		t.Errorf("code %d, the object is %s", code, o)
	}
}
