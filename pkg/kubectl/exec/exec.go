// Package exec runs a command in a container.
package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of exec.
type Options struct {
	session pods.Session
	target  string
	quiet   bool
	timeout time.Duration
	client  *resource.Client
	config  *rest.Config
}

// NewCommand returns "kubectl exec".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{session: pods.Session{Streams: streams}}
	cmd := &cobra.Command{
		Use:   "exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]",
		Short: "Execute a command in a container",
		Long:  "Execute a command in a container.",
		Example: `
# Get output from running the 'date' command from pod mypod, using the first container by default
kubectl exec mypod -- date

# Switch to raw terminal mode; sends stdin to 'bash' in ruby-container from pod mypod
# and sends stdout/stderr from 'bash' back to the client
kubectl exec mypod -c ruby-container -i -t -- bash -il`,
		RunE: cli.RunE(f, o),
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
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	dash := cmd.ArgsLenAtDash()
	if len(args) == 0 || dash == 0 {
		return errors.New("pod, type/name or --filename must be specified")
	}
	if dash < 0 && len(args) > 1 {
		return cli.UsageErrorf(cmd, "exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
	}
	if dash > 1 {
		return cli.UsageErrorf(cmd, "exec takes one POD or TYPE/NAME before --, got %d", dash)
	}
	o.target, o.session.Command = args[0], args[1:]
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
func (o *Options) Validate() error {
	if len(o.session.Command) == 0 {
		return errors.New("you must specify at least one command for the container")
	}
	return nil
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	found, err := pods.Find(ctx, o.client, o.session.Namespace, o.target, o.timeout)
	if err != nil {
		return err
	}
	pod := &found[0]
	if err := pods.Finished(pod, "exec into"); err != nil {
		return err
	}
	s := o.session
	note := s.Streams.ErrOut
	if o.quiet {
		note = nil
	}
	if s.Container, err = pods.Container(pod, s.Container, note); err != nil {
		return err
	}
	if s.TTY && !s.Stdin {
		s.TTY = false
	}
	if s.TTY && !pods.IsTerminal(s.Streams.In) {
		if !o.quiet {
			fmt.Fprintln(s.Streams.ErrOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
		s.TTY = false
	}
	s.Pod = pod.Name
	return s.Run(ctx, o.client, o.config)
}
