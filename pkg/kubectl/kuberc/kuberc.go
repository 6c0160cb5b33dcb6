package kuberc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

const examples = `  # Show the preferences
  kubectl kuberc view

  # Show tables wide, whenever nothing else is said
  kubectl kuberc set --section defaults --command get --option output=wide

  # Make "kubectl getn" of "kubectl get nodes"
  kubectl kuberc set --section aliases --name getn --command get --prependarg nodes`

// NewCommand makes "kubectl kuberc".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kuberc SUBCOMMAND",
		Short:   "Manage kuberc configuration files",
		Long:    "Show and change the file of your preferences: aliases of commands, other defaults of their flags, and which credential plug-ins may run.",
		Example: examples,
		Args:    cobra.ArbitraryArgs,
		RunE:    cli.Group,
	}
	cmd.AddCommand(newSet(f, streams), newView(f, streams))
	return cmd
}

// locate finds the file of the preferences, which must not be off.
func locate(f *cli.Factory) (Location, error) {
	l, err := Locate(f.Kuberc())
	if err == nil && l.Off {
		err = errors.New("KUBERC is disabled via KUBERC=off environment variable")
	}
	return l, err
}

// viewOptions is one run of "kubectl kuberc view".
type viewOptions struct {
	cli.IOStreams
	print    *printers.Flags
	location Location
}

func newView(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &viewOptions{IOStreams: streams, print: printers.NewFlags()}
	o.print.Output = "yaml"
	cmd := &cobra.Command{
		Use:                   "view",
		DisableFlagsInUseLine: true,
		Short:                 "Display the current kuberc configuration",
		Long:                  "Show the preferences. Where there are none yet, it offers to write some.",
		Example:               "  # Show the preferences as JSON\n  kubectl kuberc view -o json",
		RunE:                  cli.RunE(f, o),
	}
	o.print.AddFlags(cmd.Flags())
	return cmd
}

// Complete finds the file.
func (o *viewOptions) Complete(f *cli.Factory, _ *cobra.Command, _ []string) (err error) {
	o.location, err = locate(f)
	return err
}

// Validate judges -o.
func (o *viewOptions) Validate() error {
	_, err := o.print.Printer("")
	return err
}

// Run shows the file, or writes one if the user wants it.
func (o *viewOptions) Run(context.Context) error {
	p, err := Load(o.location, io.Discard) // of what is unknown, kubectl has warned when it started
	if err != nil {
		return Wrong(err)
	}
	if _, e := os.Stat(o.location.Path); p == nil && errors.Is(e, os.ErrNotExist) {
		return o.offer()
	}
	if p == nil {
		p = empty()
	}
	printer, err := o.print.Printer("")
	if err != nil {
		return err
	}
	return printer.Print(p.filled(), o.Out)
}

// offer asks whether to write the preferences that are recommended, and does.
func (o *viewOptions) offer() error {
	fmt.Fprintf(o.Out, "kuberc file not found at %s\nWould you like to generate a default kuberc file with recommended options? (y/N): ", o.location.Path)
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return nil
	}
	p := empty()
	p.Defaults = []Defaults{
		{"apply", []Option{{"server-side", "true"}}},
		{"delete", []Option{{"interactive", "true"}}},
	}
	if err := p.save(o.location.Path); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "Updated %s\n", o.location.Path)
	return nil
}

func empty() *Preference { return &Preference{Kind: kind, APIVersion: groupV1beta1} }

// filled has lists where there are none.
func (p *Preference) filled() *Preference {
	if p.Defaults == nil {
		p.Defaults = []Defaults{}
	}
	if p.Aliases == nil {
		p.Aliases = []Alias{}
	}
	return p
}
