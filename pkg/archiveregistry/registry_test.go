package archiveregistry

import (
	"archive/tar"
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// files is a tar archive of files with these contents.
func files(t *testing.T, contents map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, content := range contents {
		if err := w.WriteHeader(
			&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, content)
	}
	w.Close()
	return out.Bytes()
}

// save writes an image of layers as an archive, and returns it.
func save(t *testing.T, path, ref string, layers ...v1.Layer) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		t.Fatal(err)
	}
	return image
}

// registry serves the images of dir, and returns the server's host.
func registry(t *testing.T, dir string, names ...string) string {
	t.Helper()
	s := httptest.NewServer(New(dir, names, slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestPull: another's client gets the image by its tag and by its digest, every blob of it what its digest says.
func TestPull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	layer := func(content string) v1.Layer {
		return static.NewLayer(files(t, map[string]string{"f": content}), types.DockerUncompressedLayer)
	}
	saved := save(t, filepath.Join(dir, "app.tar"), "localhost/app:1.2", layer("one"),
		layer(strings.Repeat("two", 100_000)))
	host := registry(t, dir, "app")
	var digest v1.Hash
	pull := func(reference string) {
		t.Helper()
		ref, err := name.ParseReference(host + "/app" + reference)
		if err != nil {
			t.Fatal(err)
		}
		image, err := remote.Image(ref)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range layers { // the client compares what it reads with the digest
			content, err := l.Compressed()
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, content)
			if size, _ := l.Size(); err != nil || n != size {
				t.Errorf("%s: layer %d: %d bytes of %d, %v", reference, i, n, size, err)
			}
		}
		if l, _ := saved.Layers(); len(l) != len(layers) {
			t.Errorf("%s: %d layers of %d", reference, len(layers), len(l))
		}
		if digest, err = image.Digest(); err != nil {
			t.Error(err)
		}
		want, _ := saved.ConfigName()
		if got, err := image.ConfigName(); err != nil || got != want {
			t.Errorf("%s: configuration %s, %v; want %s", reference, got, err, want)
		}
	}
	pull(":1.2")
	pull("@" + digest.String())

	// The next pull is of the archive that stands there then.
	saved = save(t, filepath.Join(dir, "app.tar"), "localhost/app:1.2", layer("three"))
	pull(":1.2")
}

// TestRefusals: what is not there is said with the specification's codes, and nothing beside the named archives is
// reached.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save(t, filepath.Join(dir, "app.tar"), "localhost/app:1")
	save(t, filepath.Join(dir, "secret.tar"), "localhost/secret:1")
	for name, content := range map[string][]byte{
		"text": []byte("no archive"), "empty": files(t, nil),
		"many": files(t, map[string]string{"manifest.json": `[{},{}]`}),
		"lost": files(t, map[string]string{"manifest.json": `[{"Config":"c","Layers":["l"]}]`,
			"c": `{"rootfs":{"diff_ids":["sha256:00"]}}`}),
		"uneven":   files(t, map[string]string{"manifest.json": `[{"Config":"c","Layers":["c"]}]`, "c": `{}`}),
		"huge":     files(t, map[string]string{"manifest.json": strings.Repeat(" ", maxMetadata+1)}),
		"unparsed": files(t, map[string]string{"manifest.json": `{`}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".tar"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := registry(t, dir, "app", "gone", "text", "empty", "many", "lost", "uneven", "huge", "unparsed")
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/v2/", 200, ""},
		{"GET", "/v2/app/manifests/1", 200, `"schemaVersion":2`},
		{"HEAD", "/v2/app/manifests/1", 200, ""},
		{"GET", "/v2/app/manifests/2", 404, "MANIFEST_UNKNOWN"},
		{"GET", "/v2/app/manifests/sha256:00", 404, "MANIFEST_UNKNOWN"},
		{"GET", "/v2/app/blobs/sha256:00", 404, "BLOB_UNKNOWN"},
		{"GET", "/v2/secret/manifests/1", 404, "NAME_UNKNOWN"},
		{"GET", "/v2/..%2Fapp/manifests/1", 404, "NAME_UNKNOWN"},
		{"GET", "/v2/gone/manifests/1", 404, "MANIFEST_UNKNOWN"},
		{"GET", "/v2/text/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/empty/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/many/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/lost/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/uneven/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/huge/manifests/1", 500, "cannot be read"},
		{"GET", "/v2/unparsed/manifests/1", 500, "cannot be read"},
		{"PUT", "/v2/app/manifests/1", 405, ""},
		{"POST", "/v2/app/blobs/uploads/", 404, ""},
		{"GET", "/", 404, ""},
	} {
		req, err := http.NewRequest(c.method, "http://"+host+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, body)
		}
	}
}

// FuzzOpen: no archive makes the reader panic or take more memory than its bound.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "app.tar")
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("x"), types.DockerUncompressedLayer))
	if err != nil {
		f.Fatal(err)
	}
	if err := tarball.WriteToFile(path, name.MustParseReference("localhost/app:1"), image); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := open(path)
		if err != nil {
			return
		}
		defer a.Close()
		if _, err := a.manifest(); err != nil {
			t.Error(err)
		}
	})
}
