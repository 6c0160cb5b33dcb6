// Package attach connects to the process that runs in a container.
package attach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of attach.
type Options struct {
	session pods.Session
	target  string
	quiet   bool
	timeout time.Duration
	client  *resource.Client
	config  *rest.Config
}

// NewCommand returns "kubectl attach".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{session: pods.Session{Streams: streams}}
	cmd := &cobra.Command{
		Use:   "attach (POD | TYPE/NAME) -c CONTAINER [flags]",
		Short: "Attach to a running container",
		Long:  "Attach to a process that is already running inside an existing container.",
		RunE:  cli.RunE(f, o),
	}
	set := cmd.Flags()
	set.StringVarP(&o.session.Container, "container", "c", "", "Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation for selecting the container to be attached or the first container in the pod will be chosen")
	set.BoolVarP(&o.session.Stdin, "stdin", "i", false, "Pass stdin to the container")
	set.BoolVarP(&o.session.TTY, "tty", "t", false, "Stdin is a TTY")
	set.BoolVarP(&o.quiet, "quiet", "q", false, "Only print output from the remote session")
	set.DurationVar(&o.timeout, "pod-running-timeout", time.Minute, "The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("at least 1 argument is required for attach")
	}
	if len(args) > 2 {
		return errors.New("expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw " + fmt.Sprint(len(args)) + ": " + fmt.Sprint(args))
	}
	o.target = args[0]
	if len(args) == 2 {
		o.target += "/" + args[1]
	}
	if o.session.Namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	if o.client, err = f.Resources(); err != nil {
		return err
	}
	o.config, err = f.RESTConfig()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error { return nil }

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	found, err := pods.Find(ctx, o.client, o.session.Namespace, o.target, o.timeout)
	if err != nil {
		return err
	}
	pod, s := &found[0], o.session
	if err := pods.Finished(pod, "attach"); err != nil {
		return err
	}
	note := s.Streams.ErrOut
	if o.quiet {
		note = nil
	}
	if s.Container, err = pods.Container(pod, s.Container, note); err != nil {
		return err
	}
	if s.TTY && !hasTTY(pod, s.Container) {
		s.TTY = false
		if !o.quiet {
			fmt.Fprintf(s.Streams.ErrOut, "error: Unable to use a TTY - container %s did not allocate one\n", s.Container)
		}
	}
	if !o.quiet {
		fmt.Fprintln(s.Streams.ErrOut, "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.")
		fmt.Fprintln(s.Streams.ErrOut, "If you don't see a command prompt, try pressing enter.")
	}
	s.Pod = pod.Name
	return s.Run(ctx, o.client, o.config)
}

func hasTTY(pod *corev1.Pod, container string) bool {
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			return c.TTY
		}
	}
	return false
}
