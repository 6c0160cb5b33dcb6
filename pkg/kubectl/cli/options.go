package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/printers"
)

// IOStreams are a command's input and outputs. What is written to Out and ErrOut is escaped for terminals
// (printers.Escape); data goes to printers.Raw of them, as the printers of -o do, or to the streams that Raw returns.
type IOStreams struct {
	In          io.Reader
	Out, ErrOut io.Writer
}

// Raw returns the streams as they are below kubectl's escaping, for what containers, editors and servers write
// themselves.
func (s IOStreams) Raw() IOStreams {
	return IOStreams{In: s.In, Out: printers.Raw(s.Out), ErrOut: printers.Raw(s.ErrOut)}
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
