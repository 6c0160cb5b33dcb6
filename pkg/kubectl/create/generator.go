package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write"
)

// kind is one generator: how its command looks and how it builds the object.
type kind struct {
	use, short, long, example string
	aliases                   []string
	// required names the flags that must be set.
	required []string
	// flags adds the generator's own flags.
	flags func(*pflag.FlagSet)
	// build makes the object from its flags. It is called once, after the flags are read.
	build func(ctx context.Context, g *generator) (runtime.Object, error)
	// failed is the text before a refusal of the server ("failed to create configmap: "); "" for none.
	failed string
	// cluster marks kinds without a namespace; commanded marks kinds that take a command after --.
	cluster, commanded bool
}

// generator is one run of a generator.
type generator struct {
	write.Base
	kind    kind
	factory *cli.Factory

	name string
	// command is what follows --.
	command []string
	obj     runtime.Object
}

func newGenerator(f *cli.Factory, streams cli.IOStreams, k kind) *cobra.Command {
	g := &generator{Base: write.Base{Flags: write.NewFlags("kubectl-create"), IOStreams: streams}, kind: k}
	cmd := &cobra.Command{
		Use: k.use, Aliases: k.aliases, Short: k.short, Long: k.long, Example: k.example,
		RunE: cli.RunE(f, g),
	}
	set := cmd.Flags()
	g.Flags.AddFlags(set)
	g.AddManager(set)
	g.AddSaveConfig(set)
	g.AddValidate(set)
	if k.flags != nil {
		k.flags(set)
	}
	for _, name := range k.required {
		_ = cmd.MarkFlagRequired(name) // the flag was added above
	}
	return cmd
}

// errNoName is the error of a name that is empty, as of a variable of the shell that is not set.
var errNoName = errors.New("name must be specified")

// Complete takes the name and builds the object, so that mistakes in flags are found before it is sent.
func (g *generator) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	g.factory = f
	if n := cmd.ArgsLenAtDash(); n >= 0 && g.kind.commanded {
		args, g.command = args[:n], args[n:]
	}
	if len(args) != 1 {
		return cli.UsageErrorf(cmd, "exactly one NAME is required, got %d", len(args))
	}
	if g.name = args[0]; g.name == "" {
		return errNoName
	}
	if err := g.CompleteWith(f); err != nil {
		return err
	}
	var err error
	g.obj, err = g.kind.build(cmd.Context(), g)
	return err
}

// Validate checks -o.
func (g *generator) Validate() error {
	_, err := g.Printer("created")
	return err
}

// Run posts the object and shows it.
func (g *generator) Run(ctx context.Context) error {
	made, err := g.Post(ctx, g.obj)
	if err != nil && g.kind.failed != "" {
		return fmt.Errorf("%s%v", g.kind.failed, err) // %v: the text is the whole message, not the server's Status
	}
	if err != nil {
		return err
	}
	return g.Show("created", made)
}

// meta returns the object's metadata. It has a namespace only if the user named one, so that the output of
// --dry-run=client -o yaml can be used in any namespace.
func (g *generator) meta() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: g.name}
	if g.Explicit && !g.kind.cluster {
		m.Namespace = g.Namespace
	}
	return m
}

// kinds lists the generators that stand directly below "kubectl create".
func kinds() []kind {
	return []kind{
		clusterRole(), clusterRoleBinding(), configMap(), cronJob(), deployment(), ingress(), job(), namespace(),
		disruptionBudget(),
		priorityClass(), quota(), role(), roleBinding(), serviceAccount(),
	}
}
