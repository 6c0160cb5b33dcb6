package image

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlainFile: an archive that needs no unpacking is read where it is; others are, in a file that leaves nothing.
func TestPlainFile(t *testing.T) {
	t.Parallel()
	c := Stores{Spool: t.TempDir()}
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
	if left, err := os.ReadDir(c.Spool); err != nil || len(left) > 0 {
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
