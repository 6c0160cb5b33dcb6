// Package cp copies files to and from containers, through tar in the container.
package cp

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	noPreserve           bool
	// retries is how often a download that broke off continues where it stopped; negative: without limit.
	retries int
	client  *resource.Client
	config  *rest.Config
}

// file is [[NAMESPACE/]POD:]PATH; pod is "" for local files.
type file struct{ namespace, pod, path string }

// parse reads a file specification. An argument that begins with / or . is a local path, so it may have a colon.
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
		Long:  "Copy files and directories to and from containers.",
		Example: "# Requires that the 'tar' binary is present in your container image.\n\n# Copy /tmp/foo_dir local directory to /tmp/bar_dir in a remote pod in the default namespace\nkubectl cp /tmp/foo_dir mypod:/tmp/bar_dir\n\n" +
			"# Copy /tmp/foo local file to /tmp/bar in a remote pod in a specific container\nkubectl cp /tmp/foo mypod:/tmp/bar -c mycontainer\n\n# Copy /tmp/foo from a remote pod to /tmp/bar locally\nkubectl cp dev/mypod:/tmp/foo /tmp/bar",
		RunE: cli.RunE(f, o),
	}
	cmd.Flags().StringVarP(&o.container, "container", "c", "",
		"Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation for selecting the container to be attached or the first container in the pod will be chosen")
	cmd.Flags().BoolVar(&o.noPreserve, "no-preserve", false,
		"The copied file/directory's ownership and permissions will not be preserved in the container")
	cmd.Flags().IntVar(&o.retries, "retries", 0,
		"Set number of retries to complete a copy operation from a container. Specify 0 to disable or any negative value for infinite retrying. The default is 0 (no retry).")
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

// run runs command in f's pod. Without --container it chooses the container, and prints which one it took to o.Out.
func (o *Options) run(ctx context.Context, f file, command []string, in io.Reader, out, errOut io.Writer) error {
	ns := f.namespace
	if ns == "" {
		ns = o.namespace
	}
	pod, err := pods.Get(ctx, o.client, ns, f.pod)
	if err != nil {
		return err
	}
	name, err := pods.Container(pod, o.container, o.Out)
	if err != nil {
		return err
	}
	s := pods.Session{Namespace: ns, Pod: f.pod, Container: name, Command: command, Stdin: in != nil,
		Streams: cli.IOStreams{In: in, Out: out, ErrOut: errOut}}
	return s.Run(ctx, o.client, o.config)
}
