package cp

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHostileArchive: whatever a container calls tar, nothing is made, changed or linked outside of the target, and
// nothing in it but files and directories, without any bits of the container's.
func TestHostileArchive(t *testing.T) {
	t.Parallel()
	const outside = "/tmp/evil-of-an-archive"
	file := func(name string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o6777, Size: 4}
	}
	link := func(kind byte, name, to string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: kind, Linkname: to, Mode: 0o777}
	}
	for name, c := range map[string]struct {
		entries []*tar.Header
		made    string // beneath the target
	}{
		"up": {
			[]*tar.Header{file("d/../../evil"), file("d/../../../evil"), file("../evil"), file("d/x/../../../evil")},
			""},
		"up and back": {[]*tar.Header{file("d/../d/f")}, "f"},
		"absolute":    {[]*tar.Header{file(outside), file("/d/f"), file("//" + outside)}, "f"},
		"through a link": {[]*tar.Header{link(tar.TypeSymlink, "d/l", ".."), file("d/l/evil")},
			"l l/evil"},
		"through an absolute link": {
			[]*tar.Header{link(tar.TypeSymlink, "d/l", "/tmp"), file("d/l/evil-of-an-archive")},
			"l l/evil-of-an-archive"},
		"the target as a link":         {[]*tar.Header{link(tar.TypeSymlink, "d", ".."), file("d/f")}, "f"},
		"over a link":                  {[]*tar.Header{link(tar.TypeSymlink, "d/l", "../evil"), file("d/l")}, "l"},
		"through a link that is there": {[]*tar.Header{file("d/there/evil")}, ""},
		"over a link that is there":    {[]*tar.Header{file("d/dangling")}, ""},
		"a hard link out":              {[]*tar.Header{link(tar.TypeLink, "d/h", "../../secret"), file("d/h")}, "h"},
		"a hard link to a password":    {[]*tar.Header{link(tar.TypeLink, "d/h", "/etc/passwd")}, ""},
		"devices": {
			[]*tar.Header{{Name: "d/c", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 1},
				{Name: "d/b", Typeflag: tar.TypeBlock}, {Name: "d/p", Typeflag: tar.TypeFifo}, file("d/f")}, "f"},
		"a file as a directory": {[]*tar.Header{file("d/f"), file("d/f/g")}, "f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			dst := filepath.Join(dir, "in", "dst")
			if err := os.MkdirAll(dst, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "that is there") {
				for at, to := range map[string]string{"there": dir, "dangling": filepath.Join(dir, "evil")} {
					if err := os.Symlink(to, filepath.Join(dst, at)); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := tree(t, dir, dst)
			var archive bytes.Buffer
			w := tar.NewWriter(&archive)
			for _, h := range c.entries {
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, "evil"[:h.Size]); err != nil {
					t.Fatal(err)
				}
			}
			w.Close()
			u := &unpacker{errOut: io.Discard, name: "d", dst: dst}
			_ = u.unpack(&archive) // it may stop at what it cannot write
			if after := tree(t, dir, dst); after != before {
				t.Errorf("outside there was\n%s, now there is\n%s", before, after)
			}
			if _, err := os.Lstat(outside); err == nil {
				t.Errorf("%s was written", outside)
			}
			var made []string
			_ = filepath.WalkDir(dst, func(p string, e fs.DirEntry, err error) error {
				info, infoErr := e.Info()
				if err != nil || infoErr != nil || p == dst || e.Type()&fs.ModeSymlink != 0 {
					return err
				}
				rel, _ := filepath.Rel(dst, p)
				made = append(made, rel)
				if !info.IsDir() && (!info.Mode().IsRegular() ||
					info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|0o111) != 0) ||
					info.Sys().(*syscall.Stat_t).Nlink != 1 && !info.IsDir() {
					t.Errorf("%s is %s", rel, info.Mode())
				}
				return nil
			})
			if got := strings.Join(made, " "); got != c.made {
				t.Errorf("made %q, want %q", got, c.made)
			}
		})
	}
}

// tree shows what is beneath dir but not beneath but: names, modes and contents.
func tree(t *testing.T, dir, but string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == but {
			return errOr(err, fs.SkipDir)
		}
		b.WriteString(p + " " + e.Type().String())
		if e.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			b.Write(data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// TestSparseArchive: gigabytes of zeros that an archive has in a few bytes take no room, and the data around them is
// there.
func TestSparseArchive(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("NOT TRIED: there is no tar to make a sparse archive with")
	}
	const size = 2 << 30
	src := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, size / 2, size/2 + 5000} {
		if _, err := f.WriteAt([]byte("data"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	f.Close()
	archive, err := exec.CommandContext(t.Context(), program, "--format=posix", "-S", "-C", filepath.Dir(src), "-cf",
		"-", "f").Output()
	if err != nil {
		t.Fatal(err)
	}
	if len(archive) > 1<<20 {
		t.Skipf("NOT TRIED: the file system keeps no holes: an archive of %d bytes", len(archive))
	}
	dst := filepath.Join(t.TempDir(), "copy")
	u := &unpacker{errOut: io.Discard, name: "f", dst: dst}
	if err := u.unpack(bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	copied, err := os.Open(dst)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	info, err := copied.Stat()
	if err != nil || info.Size() != size || info.Sys().(*syscall.Stat_t).Blocks*512 > 1<<20 {
		t.Errorf("%d bytes, %d on the disk, %v", info.Size(), info.Sys().(*syscall.Stat_t).Blocks*512, err)
	}
	for at, want := range map[int64]string{0: "data", size / 2: "data", size/2 + 5000: "data", 4096: "\x00\x00\x00\x00",
		size - 4: "\x00\x00\x00\x00"} {
		got := make([]byte, 4)
		if _, err := copied.ReadAt(got, at); err != nil || string(got) != want {
			t.Errorf("at %d: %q, %v, want %q", at, got, err, want)
		}
	}
}
