package images

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoredImageIsServed(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "hello"), []byte("hi"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "proc", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := newLayer(dir)
	l.tree(root, map[string]bool{"proc": true})
	l.dir("proc", 0o555)
	l.text("etc/passwd", "root\n")
	l.link("bin/sh", "busybox")
	built, err := l.done()
	if err != nil {
		t.Fatal(err)
	}
	defer built.remove()
	tr := tree(filepath.Join(dir, "tree"))
	if err := tr.store("registry.example/group/name:1.0", []*layer{built}, config{Cmd: []string{"sh"}}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Handler(string(tr)))
	defer server.Close()
	status, manifest := get(t, server.URL+"/v2/group/name/manifests/1.0")
	if status != http.StatusOK || !strings.Contains(manifest, built.digest) {
		t.Fatalf("manifest: %d %s", status, manifest)
	}
	if status, data := get(t, server.URL+"/v2/group/name/blobs/"+built.digest); status != http.StatusOK ||
		int64(len(data)) != built.size {
		t.Errorf("layer: %d, %d bytes of %d", status, len(data), built.size)
	}
	for path, want := range map[string]int{
		"/v2/":                         200,
		"/v2/group/name/manifests/2.0": 404,
		"/v2/other/manifests/1.0":      404,
		"/v2/group/name/blobs/" + strings.Repeat("a", 64): 404,
		"/v2/group/../../../etc/manifests/passwd":         404,
		"/v2/group/name/manifests/..":                     404,
		"/etc/passwd":                                     404,
	} {
		if status, _ := get(t, server.URL+path); status != want {
			t.Errorf("%s: %d, not %d", path, status, want)
		}
	}
	resp, err := http.Post(server.URL+"/v2/group/name/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
