package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bonsai/pkg/durable"
)

// NewSuffix is the suffix of a file that WriteFile is still writing. A write that was interrupted leaves it.
const NewSuffix = ".new"

// WriteFile replaces the file at path, which only root may read, and makes its directory if need be. The file is
// written beside its place and renamed: a reader, and a machine that loses power, see the old content or the new one.
// KeepFile makes certain that it is the new one.
//
// A file that has the content is left alone: a start writes dozens, most of them as they are, and waits for the disk
// with each.
func WriteFile(path string, data []byte) error {
	if holds(path, data) {
		return os.Chmod(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + NewSuffix
	if err := durable.Replace(temporary, path, data); err != nil {
		return errors.Join(err, IgnoreMissing(os.Remove(temporary)))
	}
	return nil
}

// KeepFile is WriteFile for what must be there after a power cut that comes right after it: a command is about to say
// that it is done, or something is about to rely on the file, as Secrets do that a key has encrypted.
func KeepFile(path string, data []byte) error {
	if err := WriteFile(path, data); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// holds reports whether path is a file, not a link to one, with the content data.
func holds(path string, data []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	is, err := os.ReadFile(path)
	return err == nil && bytes.Equal(is, data)
}

// IgnoreMissing returns err unless it says that a file does not exist: a file to be removed may have gone already.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// StatError returns the error of looking at path: nil if something is there.
func StatError(path string) error {
	_, err := os.Stat(path)
	return err
}

// MakeLink makes a symbolic link, in place of the link or file that is there.
func MakeLink(target, link string) error {
	if err := IgnoreMissing(os.Remove(link)); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

// WritePublic is WriteFile for a file, and a directory, that everybody may read.
func WritePublic(path string, data []byte) error {
	return errors.Join(WriteFile(path, data), os.Chmod(path, 0o644), os.Chmod(filepath.Dir(path), 0o755))
}

// IsBelow reports whether path is one of dirs or below one of them.
func IsBelow(path string, dirs []string) bool {
	for _, dir := range dirs {
		if path = filepath.Clean(path); path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// IsExecutable reports whether path is a file that somebody may execute.
func IsExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// Existing returns path or, if it does not exist, the nearest directory above it that does: the one whose file system
// will hold it.
func Existing(path string) string {
	for ; path != "/"; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return path
}
