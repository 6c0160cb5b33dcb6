package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
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
	docker := map[string]string{
		"manifest.json": `[{"Config":"c.json","RepoTags":["app:1","localhost/app:2"],"Layers":["l/layer.tar"]}]`,
		"c.json":        config, "l/layer.tar": strings.Repeat("x", 1<<20+1)}
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
		return tarOf(t, map[string]string{"oci-layout": "{}", "blobs/sha256/m": `{"config":{"digest":"sha256:c"}}`,
			"blobs/sha256/c": config,
			"index.json":     fmt.Sprintf(`{"manifests":[{"digest":"sha256:m","annotations":{%s}}]}`, annotations)})
	}
	whole := tarOf(t, docker)
	for name, c := range map[string]struct {
		data  []byte
		names string
		err   string
	}{
		"docker save": {whole, "docker.io/library/app:1 localhost/app:2", ""},
		"gzipped":     {gzipped(t, whole), "docker.io/library/app:1 localhost/app:2", ""},
		"OCI": {oci(`"org.opencontainers.image.ref.name":"registry.example/app:1"`),
			"registry.example/app:1", ""},
		"OCI by buildx": {
			oci(`"org.opencontainers.image.ref.name":"1","io.containerd.image.name":"docker.io/library/app:1"`),
			"docker.io/library/app:1", ""},
		"OCI without a name":   {oci(""), "", "an image without a name (sha256:m)"},
		"OCI with a tag alone": {oci(`"org.opencontainers.image.ref.name":"latest"`), "", "the tag latest alone"},
		"OCI without its manifest": {
			tarOf(t, map[string]string{
				"index.json": `{"manifests":[{"digest":"sha256:m","annotations":{"org.opencontainers.image.ref.name":"a:1"}}]}`}), "", "lacks blobs/sha256/m"},
		"saved by its ID": {tarOf(t, map[string]string{"manifest.json": `[{"Config":"c.json"}]`}), "",
			"docker save takes the name"},
		"a bad name": {
			tarOf(t, map[string]string{"manifest.json": `[{"Config":".","RepoTags":["A B"]}]`, ".": ""}), "",
			`an image called "A B"`},
		"without a layer":           {without("l/layer.tar"), "", "lacks l/layer.tar of the image app:1"},
		"without its configuration": {without("c.json"), "", "lacks c.json"},
		"a bad manifest": {tarOf(t, map[string]string{"manifest.json": "{"}), "",
			"manifest.json that cannot be read"},
		"no image": {tarOf(t, map[string]string{"manifest.json": "[]"}), "",
			"no image in its manifest.json"},
		"docker export":   {tarOf(t, map[string]string{"bin/sh": "x"}), "", "docker export"},
		"cut":             {whole[:len(whole)/2], "", "ends in the middle"},
		"a cut gzip file": {gzipped(t, whole)[:200], "", "ends in the middle"},
		"text":            {[]byte(strings.Repeat("hello ", 200)), "", "no tar archive"},
		"a word":          {[]byte("hello"), "", "no tar archive"},
		"nothing":         {nil, "", "is empty"},
		"zstd":            {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0}, "", "zstd -d"},
		"xz":              {[]byte{0xfd, '7', 'z', 'X', 'Z', 0}, "", "xz -d"},
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
