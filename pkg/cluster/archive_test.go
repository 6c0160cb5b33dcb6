package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tarOf makes an archive of files, in the order of their names.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range sorted(files) {
		if err := addFile(w, name, 0o644, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestReadArchive: what an archive has, or in words why it is none that can be loaded.
func TestReadArchive(t *testing.T) {
	t.Parallel()
	const config = `{"os":"linux","architecture":"arm64"}`
	docker := map[string]string{"manifest.json": `[{"Config":"c.json","RepoTags":["app:1","localhost/app:2"],"Layers":["l/layer.tar"]}]`, "c.json": config, "l/layer.tar": strings.Repeat("x", 1<<20+1)}
	without := func(name string) []byte {
		files := map[string]string{}
		for k, v := range docker {
			if k != name {
				files[k] = v
			}
		}
		return tarOf(t, files)
	}
	oci := func(annotations string) []byte {
		return tarOf(t, map[string]string{"oci-layout": "{}", "blobs/sha256/m": `{"config":{"digest":"sha256:c"}}`, "blobs/sha256/c": config,
			"index.json": fmt.Sprintf(`{"manifests":[{"digest":"sha256:m","annotations":{%s}}]}`, annotations)})
	}
	whole := tarOf(t, docker)
	for name, c := range map[string]struct {
		data  []byte
		names string
		err   string
	}{
		"docker save":               {whole, "docker.io/library/app:1 localhost/app:2", ""},
		"gzipped":                   {gzipped(t, whole), "docker.io/library/app:1 localhost/app:2", ""},
		"OCI":                       {oci(`"org.opencontainers.image.ref.name":"registry.example/app:1"`), "registry.example/app:1", ""},
		"OCI by buildx":             {oci(`"org.opencontainers.image.ref.name":"1","io.containerd.image.name":"docker.io/library/app:1"`), "docker.io/library/app:1", ""},
		"OCI without a name":        {oci(""), "", "an image without a name (sha256:m)"},
		"OCI with a tag alone":      {oci(`"org.opencontainers.image.ref.name":"latest"`), "", "the tag latest alone"},
		"OCI without its manifest":  {tarOf(t, map[string]string{"index.json": `{"manifests":[{"digest":"sha256:m","annotations":{"org.opencontainers.image.ref.name":"a:1"}}]}`}), "", "lacks blobs/sha256/m"},
		"saved by its ID":           {tarOf(t, map[string]string{"manifest.json": `[{"Config":"c.json"}]`}), "", "docker save takes the name"},
		"a bad name":                {tarOf(t, map[string]string{"manifest.json": `[{"Config":".","RepoTags":["A B"]}]`, ".": ""}), "", `an image called "A B"`},
		"without a layer":           {without("l/layer.tar"), "", "lacks l/layer.tar of the image app:1"},
		"without its configuration": {without("c.json"), "", "lacks c.json"},
		"a bad manifest":            {tarOf(t, map[string]string{"manifest.json": "{"}), "", "manifest.json that cannot be read"},
		"no image":                  {tarOf(t, map[string]string{"manifest.json": "[]"}), "", "no image in its manifest.json"},
		"docker export":             {tarOf(t, map[string]string{"bin/sh": "x"}), "", "docker export"},
		"cut":                       {whole[:len(whole)/2], "", "ends in the middle"},
		"a cut gzip file":           {gzipped(t, whole)[:200], "", "ends in the middle"},
		"text":                      {[]byte(strings.Repeat("hello ", 200)), "", "no tar archive"},
		"a word":                    {[]byte("hello"), "", "no tar archive"},
		"nothing":                   {nil, "", "is empty"},
		"zstd":                      {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0}, "", "zstd -d"},
		"xz":                        {[]byte{0xfd, '7', 'z', 'X', 'Z', 0}, "", "xz -d"},
	} {
		in, err := plain(bytes.NewReader(c.data))
		var a archive
		if err == nil {
			a, err = readArchive(in)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(a.names, " "); err == nil && (got != c.names || a.platform != "linux/arm64") {
			t.Errorf("%s: %q for %q", name, got, a.platform)
		}
	}
}

// TestPlainFile: an archive that needs no unpacking is read where it is; others are, in a file that leaves nothing.
func TestPlainFile(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	if err := os.MkdirAll(c.layout().run(), 0o700); err != nil {
		t.Fatal(err)
	}
	whole := tarOf(t, map[string]string{"a": "b"})
	plainPath, packedPath := filepath.Join(t.TempDir(), "plain.tar"), filepath.Join(t.TempDir(), "packed.tgz")
	for path, data := range map[string][]byte{plainPath: whole, packedPath: gzipped(t, whole)} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, stdin := range map[string][]byte{plainPath: nil, packedPath: nil, "-": gzipped(t, whole)} {
		f, err := c.plainFile(path, bytes.NewReader(stdin))
		if err != nil {
			t.Fatal(path, err)
		}
		if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
		if same := f.Name() == plainPath; same != (path == plainPath) {
			t.Errorf("%s is read from %s", path, f.Name())
		}
		f.Close()
	}
	if left, err := os.ReadDir(c.layout().run()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := c.plainFile(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

// TestRefs: with an image's last name containerd's references to it go; ctr's tables are read.
func TestRefs(t *testing.T) {
	t.Parallel()
	images := parseImages(`REF                    TYPE                                                 DIGEST    SIZE      PLATFORMS   LABELS
docker.io/library/a:1  application/vnd.docker.distribution.manifest.v2+json sha256:11 1.2 MiB   linux/amd64 -
docker.io/library/a:2  application/vnd.docker.distribution.manifest.v2+json sha256:22 1.2 MiB   linux/amd64 -
docker.io/library/b:2  application/vnd.docker.distribution.manifest.v2+json sha256:22 1.2 MiB   linux/amd64 -
docker.io/library/a@sha256:11 application/vnd.oci sha256:11 1.2 MiB   linux/amd64 -
sha256:99              application/vnd.oci sha256:11 1.2 MiB   linux/amd64 -
`)
	if len(images) != 5 || images[0] != (nodeImage{"docker.io/library/a:1", "sha256:11", "1.2 MiB"}) {
		t.Fatalf("%+v", images)
	}
	for name, want := range map[string][]string{
		"docker.io/library/a:1": {"docker.io/library/a:1", "docker.io/library/a@sha256:11", "sha256:99"},
		"docker.io/library/a:2": {"docker.io/library/a:2"},
		"docker.io/library/c:1": nil,
	} {
		if got := refsOf(images, name); !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", name, got, want)
		}
	}
	const containers = "CONTAINER    IMAGE                  RUNTIME\n1a2b    docker.io/library/a:1    io.containerd.runc.v2\n"
	if got := userOf(containers, []string{"sha256:99", "docker.io/library/a:1"}); got != "1a2b" {
		t.Errorf("%q", got)
	}
	if got := userOf(containers, []string{"docker.io/library/a:2"}); got != "" {
		t.Errorf("%q", got)
	}
}

func TestInWords(t *testing.T) {
	t.Parallel()
	for problem, want := range map[string]string{
		"time=x level=error msg=y\nctr: failed to do: no space left on device\n": "its disk is full (bonsai image rm): failed to do: no space left on device",
		"ctr: something else\n": "something else",
		"dial unix /run/containerd/containerd.sock: connect: connection refused": "its containerd does not answer (bonsai logs n2-containerd): dial unix /run/containerd/containerd.sock: connect: connection refused",
	} {
		if got := inWords(problem, "n2"); got != want {
			t.Errorf("%q: %q", problem, got)
		}
	}
}
