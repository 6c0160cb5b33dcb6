package projected

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bonsai/pkg/kubelet/volume"
)

// Files of a volume appear to its readers all at once: they are written into a directory named by the time, ..data is
// a symlink to it which rename(2) replaces in one step, and what readers open is a symlink through ..data.
//
// This is the layout that Kubernetes documents for applications that watch ..data. Nested paths work because only the
// top of a path is a link.
const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	timeFormat  = "..2006_01_02_15_04_05."
)

// writeAtomically makes files the content of the volume at dir. If they are already, nothing is touched.
//
// The pod's worker calls it. All paths are resolved within root: the pod may have put links into its volume, and the
// kubelet is root. After a crash at any step the volume shows either the old or the new content, and the next call
// tidies the rest.
func writeAtomically(dir string, files map[string]file, own volume.Owner, now time.Time) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	defer root.Close()
	for p := range files {
		if !filepath.IsLocal(p) || strings.HasPrefix(p, "..") {
			return fmt.Errorf("path %q leaves the volume", p)
		}
	}
	old, _ := root.Readlink(dataLink)
	if old != "" && upToDate(root, old, files, own) {
		return linkNames(root, files)
	}
	next, err := writeFiles(root, files, own, now)
	if err != nil {
		return err
	}
	if err := own.Apply(root, "."); err != nil {
		return err
	}
	if err := root.Remove(newDataLink); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a left-over link: %w", err)
	}
	if err := root.Symlink(next, newDataLink); err != nil {
		return fmt.Errorf("link the new content: %w", err)
	}
	if err := root.Rename(newDataLink, dataLink); err != nil {
		return fmt.Errorf("switch to the new content: %w", err)
	}
	if err := linkNames(root, files); err != nil {
		return err
	}
	return removeOthers(root, next)
}

// upToDate reports whether the directory old holds exactly files.
//
// Mode and size are looked at before the content is read. Owners are not compared.
func upToDate(root *os.Root, old string, files map[string]file, own volume.Owner) bool {
	seen := 0
	err := fs.WalkDir(root.FS(), old, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, ok := files[strings.TrimPrefix(p, old+"/")]
		if !ok {
			return fs.ErrExist
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm() != own.Mode(f.mode) || info.Size() != int64(len(f.data)) {
			return fs.ErrExist
		}
		data, err := root.ReadFile(p)
		if err != nil || !bytes.Equal(data, f.data) {
			return fs.ErrExist
		}
		seen++
		return nil
	})
	return err == nil && seen == len(files)
}

// writeFiles writes files into a new directory and returns its name.
//
// The name has a random part besides the time: two updates may fall into one second.
func writeFiles(root *os.Root, files map[string]file, own volume.Owner, now time.Time) (string, error) {
	var b [5]byte
	rand.Read(b[:])
	name := now.UTC().Format(timeFormat) + hex.EncodeToString(b[:])
	if err := root.Mkdir(name, 0o755); err != nil {
		return "", fmt.Errorf("make the directory of the new content: %w", err)
	}
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f, full := files[p], path.Join(name, p)
		if err := root.MkdirAll(path.Dir(full), 0o755); err != nil {
			return "", fmt.Errorf("make the directory of %q: %w", p, err)
		}
		if err := root.WriteFile(full, f.data, 0o600); err != nil {
			return "", fmt.Errorf("write %q: %w", p, err)
		}
		// The owner comes before the mode: until ApplyFile the file is readable by its owner alone.
		if f.uid != nil {
			if err := root.Lchown(full, int(*f.uid), -1); err != nil {
				return "", fmt.Errorf("give %q to its user: %w", p, err)
			}
		}
		if err := own.ApplyFile(root, full, f.mode); err != nil {
			return "", err
		}
	}
	return name, own.ApplyTree(root, name)
}

// linkNames makes a symlink through ..data for each file or directory at the top, and removes those of names that are
// gone.
func linkNames(root *os.Root, files map[string]file) error {
	want := map[string]bool{}
	for p := range files {
		top, _, _ := strings.Cut(path.Clean(p), "/")
		want[top] = true
	}
	for name := range want {
		target := path.Join(dataLink, name)
		if got, err := root.Readlink(name); err == nil && got == target {
			continue
		}
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("make room for %q: %w", name, err)
		}
		if err := root.Symlink(target, name); err != nil {
			return fmt.Errorf("link %q: %w", name, err)
		}
	}
	return eachName(root, func(name string) error {
		if target, err := root.Readlink(name); err == nil && !want[name] && strings.HasPrefix(target, dataLink+"/") {
			return root.Remove(name)
		}
		return nil
	})
}

// removeOthers removes all earlier contents.
//
// A reader that has a file of them open keeps it.
func removeOthers(root *os.Root, keep string) error {
	return eachName(root, func(name string) error {
		if strings.HasPrefix(name, "..2") && name != keep {
			return root.RemoveAll(name)
		}
		return nil
	})
}

func eachName(root *os.Root, do func(name string) error) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list the volume: %w", err)
	}
	for _, e := range entries {
		if err := do(e.Name()); err != nil {
			return fmt.Errorf("tidy %q: %w", e.Name(), err)
		}
	}
	return nil
}
