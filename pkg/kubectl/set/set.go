// Package set is "kubectl set": it changes single things of existing objects (images, environment, resources, the
// service account, selectors, subjects) and patches only what changed.
package set

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// NewCommand makes the command with its subcommands.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set SUBCOMMAND",
		Short: "Set specific features on objects",
		Long:  "Configure application resources.\n\n These commands help you make changes to existing application resources.",
		RunE:  cli.Group,
	}
	cmd.AddCommand(newEnv(f, streams), newImage(f, streams), newResources(f, streams), newSelector(f, streams),
		newServiceAccount(f, streams), newSubject(f, streams))
	return cmd
}

// setter is what the subcommands share: find objects, change each, patch it and show the result.
type setter struct {
	write.Base
	target write.Target
	args   []string
	local  bool

	// operation is the printed result ("image updated"). failed is the text before a refusal of the server ("failed to
	// …:"), "" for none.
	operation, failed string
	// any changes the objects that are found even if others are missing; otherwise none is changed then.
	any bool
	// always reports an object that needs no change, too.
	always bool
}

func newSetter(streams cli.IOStreams, operation, failed string) setter {
	return setter{Base: write.Base{Flags: write.NewFlags("kubectl-set"), IOStreams: streams}, operation: operation,
		failed: failed}
}

func (s *setter) addFlags(set *pflag.FlagSet) {
	s.Flags.AddFlags(set)
	s.AddManager(set)
	s.target.AddNames(set, "Filename, directory, or URL to files identifying the resource to get from a server.")
	set.BoolVar(&s.local, "local", false, "If true, set will NOT contact api-server but run locally.")
}

// Validate checks --local and -o.
func (s *setter) Validate() error {
	if s.local && s.target.Files.Empty() {
		return resource.ErrLocalNeedsFiles
	}
	_, err := s.Printer(s.operation)
	return err
}

// find reads the objects.
func (s *setter) find(ctx context.Context) ([]*resource.Info, error) {
	q := s.target.Request(&s.Base, s.args)
	q.Latest, q.Local = !s.local, s.local
	return s.Client.Resolve(ctx, q)
}

// update changes each object. What the change says against one does not keep the others from being changed, nor what
// could be changed of the same.
func (s *setter) update(ctx context.Context, change func(*resource.Info, *unstructured.Unstructured) error) error {
	infos, err := s.find(ctx)
	if err != nil && !s.any {
		return err
	}
	return resource.Each(infos, err, func(i *resource.Info) error {
		after := i.Object.DeepCopy()
		refused := change(i, after)
		if refused != nil && reflect.DeepEqual(after.Object, i.Object.Object) {
			return refused
		}
		if err := s.patch(ctx, i, after); err != nil {
			return errors.Join(refused, err)
		}
		return refused
	})
}

// patch sends the difference; no difference is no request and no word.
func (s *setter) patch(ctx context.Context, i *resource.Info, after *unstructured.Unstructured) error {
	if err := s.Record(after); err != nil {
		return err
	}
	before, err := resource.Encode(i.Object)
	if err != nil {
		return err
	}
	now, err := resource.Encode(after)
	if err != nil {
		return err
	}
	patch, kind, err := write.Diff(i.Mapping.GroupVersionKind, before, now)
	if err != nil {
		return fmt.Errorf("%s/%s: %w", i.Mapping.Resource.Resource, i.Name, err)
	}
	same := string(patch) == "{}"
	if same && !s.local && !s.always {
		return nil
	}
	if s.local {
		return s.showLocal(after)
	}
	if same || s.DryRun == write.DryRunClient {
		i.Object = after
		return s.Show(s.operation, after)
	}
	if err := i.Patch(ctx, kind, patch, s.PatchOptions()); err != nil {
		if s.failed == "" {
			return err
		}
		return fmt.Errorf("%s %v", s.failed, err) // %v: the text is the whole message, not the server's Status
	}
	return s.Show(s.operation, i.Object)
}

// showLocal shows an object of a file, which the server has not seen, with the empty fields that its Go type has.
func (s *setter) showLocal(u *unstructured.Unstructured) error {
	typed := write.Typed(u.GroupVersionKind())
	if typed == nil {
		return s.Show(s.operation, u)
	}
	if err := resource.FromUnstructured(u, typed); err != nil {
		return fmt.Errorf("decode %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return s.Show(s.operation, typed)
}
