package cp

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"bonsai/pkg/kubectl/cli"
)

// exited reports whether err says that the command in the container ran and failed, and not that it never ran or that
// the connection broke.
func exited(err error) bool {
	var e *cli.ExitError
	return errors.As(err, &e)
}

// politely is how many more bytes of an archive are read after a local file could not be written, so that a small
// archive ends without a broken connection on both sides. The download of a larger one is canceled.
const politely = 64 << 20

// download copies from the container. Messages of tar there go to the output, as in upstream's kubectl. If tar fails
// but has sent files, the copy succeeds: tar also fails when a file changed while it read it.
func (o *Options) download(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	remote := make(chan error, 1)
	go func() {
		err := o.archive(ctx, &sink{w: w})
		if exited(err) {
			w.Close() // the archive is complete
		} else {
			w.CloseWithError(err)
		}
		remote <- err
	}()
	u := &unpacker{errOut: o.ErrOut, name: archived(o.src.path), dst: o.dst.path, hint: o.hint()}
	err := u.unpack(r)
	if err == nil {
		_, err = io.Copy(io.Discard, r) // what pads the archive
	} else if _, rest := io.CopyN(io.Discard, r, politely); rest == nil {
		cancel()
	}
	r.Close()
	switch failed := <-remote; {
	case err != nil:
		return err
	case exited(failed) && u.files == 0:
		return failed
	}
	return nil
}

// sink is a pipe that takes everything: after its reader has gone, it drops the rest without an error. So the tar in
// the container does not fail only because the unpacker has stopped, which reports its own error.
type sink struct {
	w *io.PipeWriter
	// n counts the bytes that the reader took: a retry continues after them.
	n int64
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	if errors.Is(err, io.ErrClosedPipe) {
		return len(p), nil
	}
	return n, err
}

// archive writes the files as a tar archive. With retries, an archive that broke off is made again, and tail skips the
// bytes that have arrived. This needs sh and tail in the container, and files that do not change in between.
func (o *Options) archive(ctx context.Context, w *sink) error {
	name := strings.TrimSuffix(o.src.path, "/")
	if name == "" {
		name = "/"
	}
	if o.retries == 0 {
		return o.run(ctx, o.src, []string{"tar", "cf", "-", name}, nil, w, o.Out)
	}
	for try := 0; ; try++ {
		script := fmt.Sprintf("tar cf - '%s' | tail -c+%d", strings.ReplaceAll(name, "'", `'\''`), w.n+1)
		err := o.run(ctx, o.src, []string{"sh", "-c", script}, nil, w, o.Out)
		if err == nil || exited(err) || ctx.Err() != nil || o.retries > 0 && try >= o.retries {
			return err
		}
		fmt.Fprintf(o.Out, "Resuming copy at %d bytes, retry %d/%d\n", w.n, try+1, o.retries)
	}
}

// hint says how to copy the symbolic links that cp leaves out.
func (o *Options) hint() string {
	return fmt.Sprintf(" (consider using \"kubectl exec -n %q %q -- tar cf - %q | tar xf -\")", o.src.namespace,
		o.src.pod, strings.TrimSuffix(o.src.path, "/"))
}

// archived returns the name that tar gives p in an archive: without leading / and ../, which would lead out of the
// directory; "" stands for everything.
func archived(p string) string {
	p = path.Clean(p)
	for {
		rest, ok := strings.CutPrefix(p, "../")
		if !ok {
			rest, ok = strings.CutPrefix(p, "/")
		}
		if !ok {
			break
		}
		p = rest
	}
	if p == "." || p == ".." {
		return ""
	}
	return p
}

// unpacker writes an archive's files: the entry called name becomes dst, and all others must be beneath it. The
// container is not trusted, because its tar can send any name. So os.Root resolves names beneath dst, and links, by
// which a later entry could lead out of dst, are left out (CVE-2019-1002101, CVE-2019-11246, CVE-2019-11249).
type unpacker struct {
	errOut    io.Writer
	name, dst string
	// hint is added to the first warning about a link.
	hint string
	// files counts the entries.
	files int
	root  *os.Root
}

// unpack reads the archive to its end mark.
func (u *unpacker) unpack(r io.Reader) error {
	defer func() {
		if u.root != nil {
			u.root.Close()
		}
	}()
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		u.files++
		rel, inside := u.relative(h.Name)
		if !inside {
			fmt.Fprintf(u.errOut, "warning: skipping %q: it is outside of the source\n", h.Name)
			continue
		}
		if err := u.entry(h, rel, t); err != nil {
			return err
		}
	}
}

// relative returns the entry's path beneath dst, "." for dst itself, and false if the entry is not part of the source
// that was asked for.
func (u *unpacker) relative(entry string) (string, bool) {
	p := archived(entry)
	if u.name == "" {
		return path.Clean(p), true
	}
	rest, inside := strings.CutPrefix(p, u.name)
	if rest != "" && rest[0] != '/' {
		return "", false
	}
	return path.Clean(strings.TrimPrefix(rest, "/")), inside
}

// entry writes one entry: a file or a directory. It leaves out everything else with a warning.
func (u *unpacker) entry(h *tar.Header, rel string, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeReg:
		if rel == "." {
			if err := os.MkdirAll(filepath.Dir(u.dst), 0o755); err != nil {
				return err
			}
			return write(os.Create(u.dst))(content)
		}
		if err := u.directory(path.Dir(rel)); err != nil {
			return err
		}
		return write(u.root.Create(rel))(content)
	case tar.TypeDir:
		return u.directory(rel)
	case tar.TypeSymlink:
		fmt.Fprintf(u.errOut, "warning: skipping symlink: %q -> %q%s\n", filepath.Join(u.dst, rel), h.Linkname, u.hint)
		u.hint = ""
		return nil
	}
	fmt.Fprintf(u.errOut, "warning: skipping %q: only files and directories are copied\n", h.Name)
	return nil
}

// directory makes the directory rel beneath dst, and dst itself. It opens dst once, at the first entry that needs it: a
// single file needs no directory.
func (u *unpacker) directory(rel string) (err error) {
	if u.root == nil {
		if err := os.MkdirAll(u.dst, 0o755); err != nil {
			return err
		}
		if u.root, err = os.OpenRoot(u.dst); err != nil {
			return err
		}
	}
	if rel == "." {
		return nil
	}
	return u.root.MkdirAll(rel, 0o755)
}

// write returns a function that copies into the file that was opened.
func write(f *os.File, err error) func(io.Reader) error {
	return func(r io.Reader) error {
		if err != nil {
			return err
		}
		return errors.Join(copyInto(f, r), f.Close())
	}
}
