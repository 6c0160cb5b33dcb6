package cp

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// upload copies into the container: to the given name, or into it if it is a directory there, as cp(1) does. Any
// error but an exit code of test means that no command can run in the container: nothing is sent then.
func (o *Options) upload(ctx context.Context) error {
	if _, err := os.Stat(o.src.path); err != nil {
		return fmt.Errorf("%s doesn't exist in local filesystem", o.src.path)
	}
	dst := path.Clean(o.dst.path)
	err := o.run(ctx, o.dst, []string{"test", "-d", dst}, nil, io.Discard, io.Discard)
	switch {
	case err == nil:
		dst = path.Join(dst, filepath.Base(o.src.path))
	case !exited(err):
		return err
	}
	r, w := io.Pipe()
	defer r.Close()
	go func() { w.CloseWithError(pack(w, o.src.path, path.Base(dst))) }()
	command := []string{"tar"}
	if o.noPreserve {
		command = append(command, "--no-same-permissions", "--no-same-owner")
	}
	return o.run(ctx, o.dst, append(command, "-xmf", "-", "-C", path.Dir(dst)), r, o.Out, o.ErrOut)
}

// pack writes the files under root as a tar archive in which root is called name. Symbolic links stay links: the user's
// own files are trusted, other than those of a container (unpacker).
func pack(w io.Writer, root, name string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(p); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		if h.Name = path.Join(name, filepath.ToSlash(rel)); d.IsDir() {
			h.Name += "/"
		}
		if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		file, err := os.Open(p)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(t, file)
		return err
	})
	return errors.Join(err, t.Close())
}
