package cp

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	u := &unpacker{errOut: &bytes.Buffer{}, name: "name", dst: dst}
	if err := u.unpack(&b); err != nil {
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
	for _, h := range []*tar.Header{{Name: "name/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "name/../../evil", Typeflag: tar.TypeReg, Size: 0},
		{Name: "name/l", Typeflag: tar.TypeSymlink, Linkname: "/"}, {Name: "namex/../../evil", Typeflag: tar.TypeReg}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	u := &unpacker{errOut: &bytes.Buffer{}, name: "name", dst: filepath.Join(dir, "a", "d")}
	_ = u.unpack(&b)
	if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil {
		t.Error("a file was written outside")
	}
	if _, err := os.Lstat(filepath.Join(dir, "a", "d", "l")); err == nil {
		t.Error("a link was written")
	}
}

// TestUnpackNames: which entries are the source and what lies beneath it, and what is warned of.
func TestUnpackNames(t *testing.T) {
	t.Parallel()
	file := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	dir := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeDir} }
	link := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "t"}
	}
	for _, c := range []struct {
		src     string
		entries []*tar.Header
		want    string // the files beneath the target, "." for itself
		warned  string
	}{
		{"/etc/hostname", []*tar.Header{file("etc/hostname")}, ".", ""},
		{"../../x", []*tar.Header{file("x")}, ".", ""},
		{"d/../top", []*tar.Header{file("top")}, ".", ""},
		{"d", []*tar.Header{dir("d/"), file("d/f"), dir("d/s/"), file("d/s/g")}, "f s/g", ""},
		{"d/.", []*tar.Header{dir("d/./"), file("d/./f")}, "f", ""},
		{".", []*tar.Header{dir("./"), file("./f"), file("./s/g")}, "f s/g", ""},
		{"/", []*tar.Header{file("f")}, "f", ""},
		{"d", []*tar.Header{file("dx"), file("e/f"), file("d/f")}, "f",
			"warning: skipping \"dx\": it is outside of the source\nwarning: skipping \"e/f\": it is outside of the source\n"},
		{"d", []*tar.Header{dir("d"), link("d/a"), link("d/b"), {Name: "d/p", Typeflag: tar.TypeFifo}}, "",
			"warning: skipping symlink: \"DST/a\" -> \"t\" HINT\nwarning: skipping symlink: \"DST/b\" -> \"t\"\nwarning: skipping \"d/p\": only files and directories are copied\n"},
		{"d", []*tar.Header{link("d")}, "", "warning: skipping symlink: \"DST\" -> \"t\" HINT\n"},
	} {
		dst := filepath.Join(t.TempDir(), "made", "dst")
		var archive, warned bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, h := range c.entries {
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(err)
			}
			if h.Size > 0 {
				_, _ = w.Write([]byte("x")) // into memory
			}
		}
		w.Close()
		u := &unpacker{errOut: &warned, name: archived(c.src), dst: dst, hint: " HINT"}
		if err := u.unpack(&archive); err != nil {
			t.Errorf("%s: %v", c.src, err)
		}
		var got []string
		_ = filepath.WalkDir(dst, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, _ := filepath.Rel(dst, p)
				got = append(got, rel)
			}
			return nil
		})
		if text := strings.ReplaceAll(warned.String(), dst, "DST"); strings.Join(got, " ") != c.want ||
			text != c.warned {
			t.Errorf("%s: files %q, want %q; warnings\n%s", c.src, got, c.want, text)
		}
	}
}

// TestSink: a reader that has gone is no error for what writes.
func TestSink(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	s := &sink{w: w}
	go func() { _, _ = io.ReadFull(r, make([]byte, 2)); r.Close() }()
	for range 2 {
		if n, err := s.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	if s.n != 2 {
		t.Errorf("counted %d bytes, 2 were read", s.n)
	}
}
