package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/plugin"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
)

// terminal is where the answer goes.
type terminal struct {
	cli.IOStreams
	// columns is the terminal's width; 0: Out is no terminal.
	columns int
	// plain says that the user wants no colours, ascii that the terminal has no other characters.
	plain, ascii bool
	now          func() time.Time
}

// run runs the command and returns its exit code, which is as kubectl's.
func run(ctx context.Context, args []string, t terminal) int {
	errOut := printers.Escaping(t.ErrOut)
	cmd := newCommand(t)
	cmd.SetArgs(args)
	cmd.SetOut(t.Out)
	cmd.SetErr(errOut)
	return cli.Report(errOut, cmd.ExecuteContext(ctx))
}

// question is what the user asks.
type question struct {
	f   *cli.Factory
	out terminal

	kind, name string // "" for the pods of a namespace
	everywhere bool
	last       time.Duration
	against    time.Duration
	slowest    int
	output     string
	width      int
	color      string
}

// recent is how old the pods of a namespace may be, unless the user says otherwise.
const recent = time.Hour

func newCommand(t terminal) *cobra.Command {
	q := &question{out: t,
		f: cli.NewFactory(kubeversion.Git, cli.IOStreams{In: t.In, Out: t.Out, ErrOut: printers.Escaping(t.ErrOut)})}
	cmd := &cobra.Command{
		Use:   "kubectl-trace [TYPE NAME | TYPE/NAME]",
		Short: "Show where the time goes in an object's life",
		Long: "Show where the time goes in an object's life: its steps, and the critical path, which are the steps that\n" +
			"determine when it is Ready. Without an object, it sums up the pods that were created lately.\n\n" +
			"The steps are spans of traces.bonsai.io. On a server without them, they are inferred from conditions,\n" +
			"events and other times of the objects. The answer then says so, and what is missing.",
		Example: `  # Where does the start of this pod spend its time?
  kubectl trace pod/web-6d4cf56db6-x2x9p

  # The last rollout of a Deployment as a whole, and its pods step by step
  kubectl trace deployment/web

  # All pods of a namespace that were created in the last half hour, and the ten slowest of them
  kubectl trace -n shop --last 30m --slowest 10

  # This hour against the same hour yesterday, in all namespaces
  kubectl trace -A --last 1h --against 24h

  # A page to send to somebody
  kubectl trace pod/web-6d4cf56db6-x2x9p -o html > web.html`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl trace"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.f.Command = "kubectl trace"
			if err := q.complete(cmd, args); err != nil {
				return err
			}
			if err := q.answer(cmd.Context()); err != nil {
				return err
			}
			return q.f.Warned()
		},
	}
	set := cmd.Flags()
	set.BoolVarP(&q.everywhere, "all-namespaces", "A", false,
		"If present, sum up the pods of all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.DurationVar(&q.last, "last", 0,
		"Only pods that were created within this time, such as 30m. Without an object the default is 1h.")
	set.DurationVar(&q.against, "against", 0,
		"Compare with the pods that were created this much earlier, such as 24h.")
	set.IntVar(&q.slowest, "slowest", 0, "Name this many of the slowest pods.")
	set.StringVarP(&q.output, "output", "o", "", "Output format. One of: wide, json, html, svg. Text if it is empty.")
	set.IntVar(&q.width, "width", 0, "Columns of the text. 0 is the width of the terminal, or 100 without one.")
	set.StringVar(&q.color, "color", "auto",
		"Colours of the text: auto (on a terminal, unless NO_COLOR is set), always or never.")
	plugin.AddClientFlags(cmd, q.f)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath())
	})
	return cmd
}

// complete reads and judges the arguments and flags.
func (q *question) complete(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
	case 1:
		q.kind, q.name, _ = strings.Cut(args[0], "/")
	case 2:
		q.kind, q.name = args[0], args[1]
	default:
		return cli.UsageErrorf(cmd, "One object is traced at a time, not %q", args)
	}
	if len(args) > 0 && (q.kind == "" || q.name == "" || strings.Contains(q.name, "/")) {
		return cli.UsageErrorf(cmd, "%q does not name an object: use TYPE NAME or TYPE/NAME", strings.Join(args, " "))
	}
	if q.name != "" && q.everywhere {
		return errors.New("a resource cannot be retrieved by name across all namespaces")
	}
	for name, d := range map[string]time.Duration{"last": q.last, "against": q.against} {
		if d < 0 || d == 0 && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s must be greater than 0", name)
		}
	}
	switch {
	case q.slowest < 0:
		return errors.New("--slowest must not be negative")
	case q.width < 0:
		return errors.New("--width must not be negative")
	case q.color != "auto" && q.color != "always" && q.color != "never":
		return fmt.Errorf("--color must be auto, always or never, not %q", q.color)
	}
	switch q.output {
	case "", "wide", "json", "html", "svg":
		return nil
	}
	return &printers.NoFormatError{Format: q.output, Allowed: []string{"html", "json", "svg", "wide"}}
}
