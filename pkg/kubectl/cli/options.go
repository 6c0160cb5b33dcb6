package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// IOStreams are a command's input and outputs.
type IOStreams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Options is one run of a verb.
type Options interface {
	// Complete reads the arguments and flags, and gets what the verb needs from f.
	Complete(f *Factory, cmd *cobra.Command, args []string) error
	// Validate judges the options without any request.
	Validate() error
	// Run does the work.
	Run(ctx context.Context) error
}

// Run completes, validates and runs o with cmd's context.
func Run(f *Factory, o Options, cmd *cobra.Command, args []string) error {
	if err := o.Complete(f, cmd, args); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	return o.Run(cmd.Context())
}

// RunE makes a cobra RunE that runs o.
func RunE(f *Factory, o Options) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return Run(f, o, cmd, args) }
}
