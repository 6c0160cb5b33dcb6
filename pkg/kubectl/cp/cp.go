// Package cp copies files to and from containers, through tar in the container.
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
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of cp.
type Options struct {
	cli.IOStreams
	src, dst             file
	container, namespace string
	client               *resource.Client
	config               *rest.Config
}

// file is [[NAMESPACE/]POD:]PATH; pod is "" for local files.
type file struct{ namespace, pod, path string }

func parse(arg string) (file, error) {
	pod, p, remote := strings.Cut(arg, ":")
	if !remote || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") {
		return file{path: arg}, nil
	}
	f := file{pod: pod, path: p}
	if ns, name, ok := strings.Cut(pod, "/"); ok {
		f.namespace, f.pod = ns, name
	}
	if f.pod == "" || strings.Contains(f.pod, "/") {
		return file{}, errors.New("filespec must match the canonical format: [[namespace/]pod:]file/path")
	}
	return f, nil
}

// NewCommand returns "kubectl cp".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "cp <file-spec-src> <file-spec-dest>",
		Short: "Copy files and directories to and from containers",
		Long:  "Copy files and directories to and from containers. The container's image must have the 'tar' program.",
		RunE:  cli.RunE(f, o),
	}
	cmd.Flags().StringVarP(&o.container, "container", "c", "", "Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation for selecting the container to be attached or the first container in the pod will be chosen")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) (err error) {
	if len(args) != 2 {
		return errors.New("source and destination are required")
	}
	if o.src, err = parse(args[0]); err != nil {
		return err
	}
	if o.dst, err = parse(args[1]); err != nil {
		return err
	}
	if o.namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	if o.client, err = f.Resources(); err != nil {
		return err
	}
	o.config, err = f.RESTConfig()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	switch {
	case o.src.path == "" || o.dst.path == "":
		return errors.New("filepath can not be empty")
	case o.src.pod != "" && o.dst.pod != "":
		return fmt.Errorf("one of src or dest must be a local file specification")
	case o.src.pod == "" && o.dst.pod == "":
		return errors.New("one of src or dest must be a remote file specification")
	}
	return nil
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	if o.dst.pod != "" {
		return o.upload(ctx)
	}
	return o.download(ctx)
}

// run runs command in f's pod.
func (o *Options) run(ctx context.Context, f file, command []string, in io.Reader, out io.Writer) error {
	ns := f.namespace
	if ns == "" {
		ns = o.namespace
	}
	pod, err := pods.Get(ctx, o.client, ns, f.pod)
	if err != nil {
		return err
	}
	name, err := pods.Container(pod, o.container, o.ErrOut)
	if err != nil {
		return err
	}
	s := pods.Session{Namespace: ns, Pod: f.pod, Container: name, Command: command, Stdin: in != nil,
		Streams: cli.IOStreams{In: in, Out: out, ErrOut: o.ErrOut}}
	return s.Run(ctx, o.client, o.config)
}

func (o *Options) upload(ctx context.Context) error {
	if _, err := os.Stat(o.src.path); err != nil {
		return fmt.Errorf("%s doesn't exist in local filesystem", o.src.path)
	}
	r, w := io.Pipe()
	defer r.Close()
	dst := o.dst.path
	if strings.HasSuffix(dst, "/") {
		dst += filepath.Base(o.src.path)
	}
	go func() { w.CloseWithError(pack(w, o.src.path, path.Base(dst))) }()
	return o.run(ctx, o.dst, []string{"tar", "-xmf", "-", "-C", path.Dir(dst)}, r, o.Out)
}

// pack writes the files under root as a tar archive in which root is called name.
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

func (o *Options) download(ctx context.Context) error {
	r, w := io.Pipe()
	defer r.Close()
	src := path.Clean(o.src.path)
	go func() {
		w.CloseWithError(o.run(ctx, o.src, []string{"tar", "cf", "-", "-C", path.Dir(src), path.Base(src)}, nil, w))
	}()
	dst := o.dst.path
	if info, err := os.Stat(dst); err == nil && info.IsDir() {
		dst = filepath.Join(dst, path.Base(src))
	}
	return o.unpack(r, path.Base(src), dst)
}

// unpack writes the archive's files: what it calls name becomes dst, everything else must be beneath it. The container is
// not trusted: names are resolved beneath dst by the kernel, links are left out.
func (o *Options) unpack(r io.Reader, name, dst string) error {
	var root *os.Root
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		rel, inside := strings.CutPrefix(path.Clean(h.Name), name)
		rel = strings.TrimPrefix(rel, "/")
		switch {
		case !inside:
			fmt.Fprintf(o.ErrOut, "warning: skipping %q: it is outside of the source\n", h.Name)
		case h.Typeflag == tar.TypeReg && rel == "":
			return write(os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm()))(t)
		case h.Typeflag == tar.TypeDir && rel == "":
			if err := os.MkdirAll(dst, 0o755); err != nil {
				return err
			}
			if root, err = os.OpenRoot(dst); err != nil {
				return err
			}
			defer root.Close()
		case root == nil:
			return fmt.Errorf("unexpected %q before its directory", h.Name)
		case h.Typeflag == tar.TypeDir:
			if err := root.MkdirAll(rel, 0o755); err != nil {
				return err
			}
		case h.Typeflag == tar.TypeReg:
			if err := write(root.OpenFile(rel, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm()))(t); err != nil {
				return err
			}
		default:
			fmt.Fprintf(o.ErrOut, "warning: skipping %q: only files and directories are copied\n", h.Name)
		}
	}
}

// write returns a function that copies into the file that was opened.
func write(f *os.File, err error) func(io.Reader) error {
	return func(r io.Reader) error {
		if err != nil {
			return err
		}
		_, err := io.Copy(f, r)
		return errors.Join(err, f.Close())
	}
}
