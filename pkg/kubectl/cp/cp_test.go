package cp

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

func TestPackUnpack(t *testing.T) {
	t.Parallel()
	src, dst := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "d")
	if err := os.MkdirAll(filepath.Join(src, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "sub", "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pack(&b, src, "name"); err != nil {
		t.Fatal(err)
	}
	o := &Options{IOStreams: cli.IOStreams{ErrOut: &bytes.Buffer{}}}
	if err := o.unpack(&b, "name", dst); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dst, "sub", "f")); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
}

func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{{Name: "name/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "name/../../evil", Typeflag: tar.TypeReg, Size: 0}, {Name: "name/l", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "namex/../../evil", Typeflag: tar.TypeReg}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	o := &Options{IOStreams: cli.IOStreams{ErrOut: &bytes.Buffer{}}}
	_ = o.unpack(&b, "name", filepath.Join(dir, "a", "d"))
	if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil {
		t.Error("a file was written outside")
	}
	if _, err := os.Lstat(filepath.Join(dir, "a", "d", "l")); err == nil {
		t.Error("a link was written")
	}
}
