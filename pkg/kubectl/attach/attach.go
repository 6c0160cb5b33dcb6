// Package attach connects to the process that runs in a container.
package attach

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
)

// Options is one run of attach.
type Options struct {
	pods.Conversation
	detachKeys string
}

// NewCommand returns "kubectl attach".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Conversation: pods.Conversation{Session: pods.Session{Streams: streams}}}
	cmd := &cobra.Command{
		Use:     "attach (POD | TYPE/NAME) -c CONTAINER",
		Example: "# The output of a running pod\nkubectl attach web\n\n# The output of one of its containers\nkubectl attach web -c app\n\n# A terminal of it\nkubectl attach web -c app -i -t\n\n# The first pod of a replica set\nkubectl attach rs/web",
		Short:   "Attach to a running container",
		Long:    "Attach to a process that is already running inside an existing container.",
		RunE:    cli.RunE(f, o),
	}
	o.AddFlags(cmd.Flags())
	pods.AddDetachKeys(cmd.Flags(), &o.detachKeys)
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("at least 1 argument is required for attach")
	}
	if len(args) > 2 {
		return errors.New("expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw " + fmt.Sprint(len(args)) +
			": " + fmt.Sprint(args))
	}
	o.Target = args[0]
	if len(args) == 2 {
		o.Target += "/" + args[1]
	}
	return o.Connect(f)
}

// Validate implements cli.Options.
func (o *Options) Validate() error { return nil }

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	pod, err := o.Find(ctx, "attach")
	if invalid := (*pods.NoContainerError)(nil); errors.As(err, &invalid) {
		return fmt.Errorf("cannot attach to the container: %w", err)
	}
	if err != nil {
		return err
	}
	return o.Attach(ctx, pod, o.detachKeys)
}
