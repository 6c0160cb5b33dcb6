package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/plugin"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/plainjson"
	"bonsai/pkg/why"
	"bonsai/pkg/why/live"
	"bonsai/pkg/why/render"
)

// terminal is where the answer goes.
type terminal struct {
	cli.IOStreams
	// columns is the terminal's width; 0: Out is no terminal.
	columns int
	// colour is what the user wants; it has an effect on a terminal only.
	colour bool
	now    func() time.Time
}

// maxColumns is the width of the text on a wider terminal: longer lines are hard to read.
const maxColumns = 110

// run runs the command and returns its exit code: 0 if it answered, whatever the answer is, otherwise kubectl's.
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
	f      *cli.Factory
	out    terminal
	output string // -o
	questions
	// at is when the question was asked.
	at time.Time
}

func newCommand(t terminal) *cobra.Command {
	q := &question{out: t,
		f: cli.NewFactory(kubeversion.Git, cli.IOStreams{In: t.In, Out: t.Out, ErrOut: printers.Escaping(t.ErrOut)})}
	cmd := &cobra.Command{
		Use:   "kubectl-why [TYPE NAME | TYPE/NAME]",
		Short: "Explain why something in a cluster is as it is",
		Long: "Explain why something in a cluster is as it is: causes with their evidence, and the smallest change that\n" +
			"helps, with its command. It reads the API with your rights and changes nothing. What it may not read, it names.\n" +
			"Without an object, it lists what is not healthy in the namespace.",
		Example: `  # What is not well in this namespace?
  kubectl why -n shop

  # Why does this pod wait?
  kubectl why pod/web

  # Why is this Deployment not complete? For a program
  kubectl why deployment web -n shop -o json

  # Which right does this ServiceAccount lack?
  kubectl why --can 'list pods' --as system:serviceaccount:shop:web -n shop

  # Which budget forbids it to evict this pod?
  kubectl why --evict pod/web

  # Where would the pods of this node go, and may they?
  kubectl why --what-if 'drain n2'

  # Is there room for this file?
  kubectl why -f web.yaml

  # Who owns the fields that this file would change?
  kubectl why --apply web.yaml --field-manager ci`,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl why"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.f.Command = "kubectl why"
			if err := q.answer(cmd, args); err != nil {
				return err
			}
			return q.f.Warned()
		},
	}
	cmd.Flags().StringVarP(&q.output, "output", "o", "", "Output format: json, or text if it is empty.")
	q.questions.addFlags(cmd.Flags())
	plugin.AddClientFlags(cmd, q.f)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help' for usage.", err, cmd.CommandPath())
	})
	return cmd
}

// answer reads the arguments, asks and shows.
func (q *question) answer(cmd *cobra.Command, args []string) error {
	if q.output != "" && q.output != "json" {
		return &printers.NoFormatError{Format: q.output, Allowed: []string{"json"}}
	}
	flag, err := q.asked()
	if err != nil {
		return err
	}
	var answers []why.Answer
	switch flag {
	case "":
		answers, err = q.explain(cmd, args)
	case "--what-if", "--filename":
		return q.showForeseen(cmd, args, flag)
	default:
		answers, err = q.ask(cmd, args, flag)
	}
	if err == nil {
		err = cmd.Context().Err() // what was not read is not absent, and half an answer is none
	}
	if err != nil {
		return err
	}
	flags := clusterFlags(cmd)
	for _, a := range answers {
		a = a.To(flags)
		if err := q.show(a, a); err != nil {
			return err
		}
	}
	return nil
}

// clusterFlags are the flags by which the caller named the cluster: a command of the answer, copied without them, would
// change another one.
func clusterFlags(cmd *cobra.Command) (flags why.CommandLine) {
	for _, name := range []string{"kubeconfig", "context", "cluster", "server"} {
		if f := cmd.Flag(name); f.Changed && f.Value.String() != "" {
			if flags != "" {
				flags += " "
			}
			flags += why.Command("--"+name+" %s", f.Value.String())
		}
	}
	return flags
}

// explain answers about the object that the arguments name, or without any about the namespace of the request.
func (q *question) explain(cmd *cobra.Command, args []string) ([]why.Answer, error) {
	o, err := q.subject(cmd, args)
	if err != nil {
		return nil, err
	}
	c, err := q.newCase()
	if err != nil {
		return nil, err
	}
	a, err := c.Explain(cmd.Context(), o)
	return []why.Answer{a}, err
}

// newCase returns a case for the question.
func (q *question) newCase() (*why.Case, error) {
	w, err := q.world()
	if err != nil {
		return nil, err
	}
	q.at = q.out.now()
	return why.NewCase(w, q.at, explainers()), nil
}

// subject returns the object that the arguments name, the namespace of the request if there are none.
func (q *question) subject(cmd *cobra.Command, args []string) (why.Object, error) {
	if len(args) == 0 {
		namespace, _, err := q.f.Namespace()
		return why.Object{Kind: "Namespace", Name: namespace}, err
	}
	kind, name, err := target(cmd, args)
	if err != nil {
		return why.Object{}, err
	}
	return q.object(kind, name)
}

// target returns the type and the name that the arguments say.
func target(cmd *cobra.Command, args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	default:
		return "", "", cli.UsageErrorf(cmd, "One object is explained at a time, not %q", args)
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", cli.UsageErrorf(cmd, "%q does not name an object: use TYPE NAME or TYPE/NAME, or only -n "+
			"NAMESPACE to ask about all that is in a namespace", strings.Join(args, " "))
	}
	return kind, name, nil
}

// object returns the object of that type and name, in the namespace of the request if its kind has namespaces.
func (q *question) object(kind, name string) (why.Object, error) {
	c, err := q.f.Resources()
	if err != nil {
		return why.Object{}, err
	}
	m, err := c.Mapping(kind)
	if err != nil {
		return why.Object{}, err
	}
	o := why.Object{Group: m.GroupVersionKind.Group, Kind: m.GroupVersionKind.Kind, Name: name}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		if o.Namespace, _, err = q.f.Namespace(); err != nil {
			return why.Object{}, err
		}
	}
	return o, nil
}

// world returns the cluster of the kubeconfig.
func (q *question) world() (*why.World, error) {
	d, err := q.f.Dynamic()
	if err != nil {
		return nil, err
	}
	m, err := q.f.Mapper()
	if err != nil {
		return nil, err
	}
	cfg, err := q.f.RESTConfig()
	if err != nil {
		return nil, err
	}
	core, err := corev1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return why.NewWorld(&live.Source{Dynamic: d, Mapper: m, Core: core.RESTClient()}), nil
}

// show prints the answer as text, or the data behind it with -o json.
func (q *question) show(a why.Answer, data any) error {
	if q.output == "json" {
		var doc bytes.Buffer
		e := json.NewEncoder(&doc)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(data); err != nil {
			return err
		}
		_, err := q.out.Out.Write(plainjson.Escape(doc.Bytes())) // no control character of others is left
		return err
	}
	_, err := io.WriteString(q.out.Out, render.Text(a, render.Style{Width: min(q.out.columns, maxColumns),
		Colour: q.out.columns > 0 && q.out.colour, Now: q.at, Escape: printers.Escape}))
	return err
}
