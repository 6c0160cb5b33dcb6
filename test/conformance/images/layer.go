// Package images builds the few images that the conformance suite runs, under their exact names, into the directory
// tree of a container registry, and serves that tree read-only.
//
// The files: recipes.go (which images, made of what), layer.go (a layer as a tar file), tree.go (the registry's tree),
// serve.go (HTTP); rootfs.sh and deploy/images/busybox/build.sh make the two inputs that are no Go programs.
package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// layer is one layer being written to a temporary file, digested on the way. Errors stick until done.
type layer struct {
	file   *os.File
	out    *tar.Writer
	hash   interface{ Sum([]byte) []byte }
	dirs   map[string]bool
	err    error
	digest string
	size   int64
}

func newLayer(dir string) *layer {
	l := &layer{dirs: map[string]bool{".": true}}
	l.file, l.err = os.CreateTemp(dir, "layer-*")
	hash := sha256.New()
	l.hash = hash
	l.out = tar.NewWriter(io.MultiWriter(l.file, hash))
	return l
}

func (l *layer) add(h *tar.Header, content io.Reader) {
	if l.err != nil {
		return
	}
	if l.err = l.out.WriteHeader(h); l.err == nil && content != nil {
		_, l.err = io.Copy(l.out, content)
	}
}

// dir adds a directory and those above it.
func (l *layer) dir(name string, mode int64) {
	if l.dirs[name] {
		return
	}
	l.dir(path.Dir(name), 0o755)
	l.dirs[name] = true
	l.add(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

// text adds a small file.
func (l *layer) text(name, content string) {
	l.dir(path.Dir(name), 0o755)
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))},
		strings.NewReader(content))
}

// program adds a file of this machine.
func (l *layer) program(name, source string, mode int64) {
	if l.err != nil {
		return
	}
	f, err := os.Open(source)
	if err != nil {
		l.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		l.err = err
		return
	}
	l.dir(path.Dir(name), 0o755)
	l.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size()}, f)
}

// link adds a symbolic link.
func (l *layer) link(name, target string) {
	l.dir(path.Dir(name), 0o755)
	l.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

// tree adds a directory tree of this machine except for what skip names and for devices.
func (l *layer) tree(root string, skip map[string]bool) {
	if l.err != nil {
		return
	}
	if root, l.err = filepath.EvalSymlinks(root); l.err != nil {
		return
	}
	l.err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil || name == "." {
			return err
		}
		if skip[name] {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		return l.copy(p, name, d)
	})
}

func (l *layer) copy(p, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(p); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return fmt.Errorf("read %s: %w", p, err)
	}
	h.Name, h.Uname, h.Gname = name, "", ""
	switch h.Typeflag {
	case tar.TypeReg:
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		l.add(h, f)
	case tar.TypeDir:
		l.dirs[name], h.Name = true, name+"/"
		l.add(h, nil)
	case tar.TypeSymlink:
		l.add(h, nil)
	}
	return l.err
}

// done ends the layer; its file is then ready to be stored.
func (l *layer) done() (*layer, error) {
	if l.err == nil {
		l.err = l.out.Close()
	}
	if l.err != nil {
		return nil, fmt.Errorf("build a layer: %w", l.err)
	}
	l.digest = "sha256:" + hex.EncodeToString(l.hash.Sum(nil))
	l.size, l.err = l.file.Seek(0, io.SeekCurrent)
	return l, l.err
}

func (l *layer) remove() {
	l.file.Close()
	os.Remove(l.file.Name())
}
