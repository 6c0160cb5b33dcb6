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
		file, err := Stores{Spool: t.TempDir()}.plainFile("-", bytes.NewReader(c.data))
		var a archive
		if err == nil {
			a, err = readArchive(file)
			file.Close()
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(a.names, " "); err == nil && (got != c.names || a.platform != "linux/arm64") {
			t.Errorf("%s: %q for %q", name, got, a.platform)
		}
	}
}

// TestArchiveBounds: what is read of an archive is bounded, and the error names the bound. Other files do not count.
// They did, and an index behind many of them was overlooked.
func TestArchiveBounds(t *testing.T) {
	t.Parallel()
	entries := func(n int, name func(i int) string) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for i := range n {
			if err := w.WriteHeader(&tar.Header{Name: name(i), Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	image := func(config string) string { return `{"Config":"` + config + `","RepoTags":["app:1"],"Layers":[]}` }
	layers := map[string]string{"blobs/sha256/m": `{"config":{"digest":"sha256:c"}}`,
		"blobs/sha256/c": `{"os":"linux","architecture":"arm64"}`,
		"index.json": `{"manifests":[{"digest":"sha256:m","annotations":
			{"io.containerd.image.name":"docker.io/library/app:1"}}]}`}
	for i := range 20 {
		layers[fmt.Sprint("blobs/sha256/0", i)] = strings.Repeat("x", 900<<10)
	}
	for i := range 2000 {
		layers[fmt.Sprint("blobs/sha256/1", i)] = strings.Repeat("x", 100)
	}
	for name, c := range map[string]struct {
		data []byte
		err  string
	}{
		"many layers and small files before the index": {tarOf(t, layers), ""},
		"too many files": {entries(maxEntries+1, func(i int) string { return fmt.Sprint(i) }),
			"has more than 100000 files"},
		"names too long": {entries(maxNames>>19, func(i int) string {
			return strings.Repeat("n", 1<<19) + fmt.Sprint(i)
		}), "has names of files with more than 16777216 bytes together"},
		"a large manifest": {tarOf(t, map[string]string{"manifest.json": strings.Repeat(" ", maxDocument+1)}),
			"has manifest.json of 4194305 bytes, and reading ends at 4194304"},
		"a large index": {tarOf(t, map[string]string{"index.json": strings.Repeat(" ", maxDocument+1)}),
			"has index.json of 4194305 bytes, and reading ends at 4194304"},
		"a large configuration": {tarOf(t, map[string]string{"manifest.json": "[" + image("c.json") + "]",
			"c.json": strings.Repeat(" ", maxDocument+1)}), "has c.json of 4194305 bytes"},
		"configurations that are large together": {tarOf(t, map[string]string{
			"manifest.json": "[" + strings.Repeat(image("c.json")+",", 16) + image("c.json") + "]",
			"c.json":        strings.Repeat(" ", maxDocument)}),
			"has indexes, manifests and configurations with more than 67108864 bytes together"},
	} {
		a, err := readArchive(bytes.NewReader(c.data))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(a.names) != 1 || a.platform != "linux/arm64") {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
