package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestWriteImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!"), 0o700); err != nil {
		t.Fatal(err)
	}
	recipe := Recipe{Ref: "localhost/try:1", Files: map[string]string{"usr/bin/program": program},
		Links: map[string]string{"bin/p": "../usr/bin/program"},
		Text:  map[string]string{"etc/passwd": "root"}, Dirs: []string{"tmp"}, Entrypoint: []string{"/usr/bin/program"},
		User: "7"}
	for _, out := range []string{"a.tar", "b.tar"} {
		if err := WriteRecipe(filepath.Join(dir, out), recipe); err != nil {
			t.Fatal(err)
		}
	}
	a, b := mustRead(t, filepath.Join(dir, "a.tar")), mustRead(t, filepath.Join(dir, "b.tar"))
	if !bytes.Equal(a, b) {
		t.Error("the same recipe gave different bytes")
	}
	tag, err := name.NewTag(recipe.Ref)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(dir, "a.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != "7" || config.OS != "linux" ||
		config.Config.Entrypoint[0] != "/usr/bin/program" {
		t.Errorf("config %+v, %v", config, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
	for path, mode := range map[string]int64{"tmp/": 0o1777, "usr/bin/": 0o755, "usr/bin/program": 0o755,
		"etc/passwd": 0o644, "bin/p": 0o777} {
		if modes[path] != mode {
			t.Errorf("%s has mode %o, not %o", path, modes[path], mode)
		}
	}
}

func TestWriteImageNeedsItsFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.tar")
	if err := WriteRecipe(path,
		Recipe{Ref: "localhost/try:1", Files: map[string]string{"a": "/no/such/file"}}); err == nil {
		t.Error("an image of a missing file was written")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("half an image is there: %v", err)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestArchitecture: an image says for which architecture its programs are, and programs for two make none.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name string, machine elf.Machine) string {
		header := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64),
			byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_EXEC), Machine: uint16(machine),
			Version: uint32(elf.EV_CURRENT), Ehsize: 64}
		var out bytes.Buffer
		if err := binary.Write(&out, binary.LittleEndian, header); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, out.Bytes(), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!"), 0o700); err != nil {
		t.Fatal(err)
	}
	amd64, arm64, other := program("amd64", elf.EM_X86_64), program("arm64", elf.EM_AARCH64),
		program("other", elf.EM_RISCV)
	for _, test := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"a": script, "b": arm64}, "arm64"},
		{map[string]string{"a": amd64}, "amd64"},
		{map[string]string{"a": script}, runtime.GOARCH},
		{map[string]string{"a": amd64, "b": arm64}, ""},
		{map[string]string{"a": other}, ""},
	} {
		got, err := Recipe{Files: test.files}.architecture()
		if got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%v: %q, %v", test.files, got, err)
		}
	}
}
