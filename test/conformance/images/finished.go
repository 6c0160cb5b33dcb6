package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// finishedMark is a file in a tree that holds all images. Without it a directory is what an interrupted copy, an
// earlier version or somebody else left: images may be missing.
const finishedMark = "finished"

// registryDir is the directory that all else of a tree is in.
const registryDir = "docker"

// Finished reports whether dir is a tree with all images. A directory that holds anything but (a part of) a tree is an
// error: Build would have to remove what is not ours.
func Finished(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	done := false
	for _, e := range entries {
		switch e.Name() {
		case finishedMark:
			done = true
		case registryDir:
		default:
			return false, fmt.Errorf(
				"%s is no directory of test images: it holds %s; remove it, or name another data directory", dir,
				e.Name())
		}
	}
	return done, nil
}

// finish marks the tree and puts it at dir, in place of what is unfinished there.
func (t tree) finish(dir string) error {
	if err := os.WriteFile(filepath.Join(string(t), finishedMark), nil, 0o644); err != nil {
		return err
	}
	done, err := Finished(dir)
	if err != nil {
		return err
	}
	if done {
		return fmt.Errorf("%s holds finished images already", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(string(t), dir)
}
