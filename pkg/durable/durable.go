// Package durable writes files that are there with their content also after the machine has lost its power. One that is
// renamed before its content is on the disk may be empty then. A cluster cannot start again without its authorities'
// keys, nor a kubelet begin, nor a pod end, for which such a file is all that is known.
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write writes a file that only its owner may read. It is on the disk when Write returns.
func Write(path string, data []byte) error {
	f, err := os.OpenFile(path, anew, ownerOnly)
	if err != nil {
		return err
	}
	return fill(f, data)
}

const (
	anew      = os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	ownerOnly = 0o600
)

// fill writes a file's content to the disk, and closes it.
func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// Replace writes a file by way of next, a name next to it that is not read: after a crash, even of the machine, there
// is the old content or the new one. Which of them is certain only after SyncDir.
func Replace(next, path string, data []byte) error {
	if err := Write(next, data); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// ReplaceIn is Replace for names beneath root, which no link leads out of.
func ReplaceIn(root *os.Root, next, name string, data []byte) error {
	f, err := root.OpenFile(next, anew, ownerOnly)
	if err != nil {
		return err
	}
	if err := fill(f, data); err != nil {
		return err
	}
	return root.Rename(next, name)
}

// Rename renames a file or a directory. It has its new name on the disk when Rename returns.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// SyncDir returns when the names in a directory are on the disk, as fsync(2) of their files does not promise. Whoever
// tells a user that something is done, or relies on a file elsewhere, such as a key, calls it first.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Flush returns when everything that was written to the file system of path is on its disk, by whomever: syncfs(2).
func Flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("flush the file system of %s: %w", path, err)
	}
	return nil
}
