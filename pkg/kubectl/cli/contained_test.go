package cli

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCacheStaysInside: whatever a server calls its groups, nothing is written outside of the directory of the cache,
// and its other resources are found.
func TestCacheStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cache := filepath.Join(dir, "in", "cache")
	for _, group := range []string{"../../../../made", "/../../../../made", dir + "/made", "a/../../../../../made",
		"..", "."} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api":
				io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				fmt.Fprintf(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":%q,"versions":[{"groupVersion":%q,"version":"v1"}],"preferredVersion":{"groupVersion":%[2]q,"version":"v1"}}]}`, group, group+"/v1")
			case "/api/v1":
				io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]}]}`)
			default: // the path is what is left of the group
				fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":%q,"resources":[{"name":"foos","singularName":"foo","kind":"Foo","verbs":["get"]}]}`, group+"/v1")
			}
		}))
		f := parsed(t, &bytes.Buffer{}, "--kubeconfig="+os.DevNull, "--server="+s.URL, "--cache-dir="+cache)
		d, err := f.Discovery()
		if err != nil {
			t.Fatal(err)
		}
		_, lists, err := d.ServerGroupsAndResources()
		if err == nil || !strings.Contains(err.Error(), "is no name of a group and version") {
			t.Errorf("%q: %v", group, err)
		}
		if len(lists) != 1 || lists[0].GroupVersion != "v1" {
			t.Errorf("%q: found %v", group, lists)
		}
		s.Close()
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasPrefix(p, cache+"/") {
			t.Errorf("%s was written", p)
		}
		return err
	})
}
