// Package exec runs a command in a container.
package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of exec.
type Options struct {
	pods.Conversation
	files resource.Files
}

// NewCommand returns "kubectl exec".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Conversation: pods.Conversation{Session: pods.Session{Streams: streams}}}
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
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringSliceVarP(&o.files.Names, "filename", "f", nil, "to use to exec into the resource")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if !o.files.Empty() {
		if dash > 0 || dash < 0 && len(args) > 0 {
			return cli.UsageErrorf(cmd,
				"exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
		}
		o.Command = args
		return o.Connect(f)
	}
	if len(args) == 0 || dash == 0 {
		return errors.New("pod, type/name or --filename must be specified")
	}
	if dash < 0 && len(args) > 1 {
		return cli.UsageErrorf(cmd,
			"exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead")
	}
	if dash > 1 {
		return cli.UsageErrorf(cmd, "exec takes one POD or TYPE/NAME before --, got %d", dash)
	}
	if o.Target, o.Command = args[0], args[1:]; o.Target == "" {
		return errors.New("pod, type/name or --filename must be specified")
	}
	return o.Connect(f)
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	if len(o.Command) == 0 {
		return errors.New("you must specify at least one command for the container")
	}
	return nil
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	if !o.files.Empty() {
		if err := o.FromFiles(ctx, o.files); err != nil {
			return err
		}
	}
	if _, err := o.Find(ctx, "exec into"); err != nil {
		return err
	}
	o.TTY = o.TTY && o.Stdin
	if o.TTY && !pods.IsTerminal(o.Streams.In) {
		if !o.Quiet {
			fmt.Fprintln(o.Streams.ErrOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
		o.TTY = false
	}
	return o.Talk(ctx)
}
