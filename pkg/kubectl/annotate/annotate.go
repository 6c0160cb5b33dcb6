// Package annotate is "kubectl annotate": it sets, changes and removes annotations.
package annotate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Update pod 'foo' with the annotation 'description' and the value 'my frontend'
  kubectl annotate pods foo description='my frontend'

  # Update pod 'foo' by removing an annotation named 'description' if it exists
  # Does not require the --overwrite flag
  kubectl annotate pods foo description-`

// Options is one run of "kubectl annotate".
type Options struct {
	write.Base
	target                 write.Target
	args                   []string
	overwrite, list, local bool
	version                string

	set    map[string]string
	remove []string
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-annotate"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "annotate [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		Short:   "Update the annotations on a resource",
		Long:    "Update the annotations on one or more resources.\n\n All Kubernetes objects support the ability to store additional data with the object as annotations. Annotations are key/value pairs that can be larger than labels and include arbitrary string values such as structured JSON.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.target.AddFlags(set, "Filename, directory, or URL to files identifying the resource to update the annotation")
	o.target.AddFieldSelector(set)
	o.target.AddAllNamespaces(set)
	set.BoolVar(&o.overwrite, "overwrite", false, "If true, allow annotations to be overwritten, otherwise reject annotation updates that overwrite existing annotations.")
	set.BoolVar(&o.list, "list", false, "If true, display the annotations for a given resource.")
	set.BoolVar(&o.local, "local", false, "If true, annotation will NOT contact api-server but run locally.")
	set.StringVar(&o.version, "resource-version", "", "If non-empty, the annotation update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.")
	return cmd
}

// Complete parts the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	objects, pairs, err := write.SplitPairs(args, "annotation")
	if err != nil {
		return err
	}
	o.args = objects
	if o.set, o.remove, err = parse(pairs); err != nil {
		return err
	}
	return o.CompleteWith(f)
}

// parse reads "key=value" and "key-".
func parse(pairs []string) (map[string]string, []string, error) {
	set := map[string]string{}
	var remove, both []string
	for _, p := range pairs {
		if k, v, ok := strings.Cut(p, "="); ok {
			set[k] = v
		} else {
			remove = append(remove, strings.TrimSuffix(p, "-"))
		}
	}
	for _, k := range remove {
		if _, ok := set[k]; ok {
			both = append(both, k)
		}
	}
	if len(both) > 0 {
		return nil, nil, fmt.Errorf("can not both modify and remove the following annotation(s) in the same command: %s", strings.Join(both, ", "))
	}
	return set, remove, nil
}

// Validate judges the arguments.
func (o *Options) Validate() error {
	switch {
	case o.target.All && o.target.Selector != "":
		return errors.New("cannot set --all and --selector at the same time")
	case o.target.All && o.target.FieldSelector != "":
		return errors.New("cannot set --all and --field-selector at the same time")
	case o.local && len(o.args) > 0:
		return errors.New("can only use local files by -f pod.yaml or --filename=pod.json when --local=true is set")
	case len(o.args) == 0 && o.target.Files.Empty():
		return write.ErrNoObjects
	case len(o.set)+len(o.remove) == 0 && !o.list:
		return errors.New("at least one annotation update is required")
	}
	_, err := o.Printer("annotated")
	return err
}

// Run annotates what it finds.
func (o *Options) Run(ctx context.Context) error {
	q := o.target.Request(&o.Base, o.args)
	q.Latest = !o.local
	infos, err := o.Client.Resolve(ctx, q)
	if o.version != "" && (len(infos) > 1 || o.target.All || o.target.Selector != "") {
		return errors.New("--resource-version may only be used with a single resource")
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	for _, i := range infos {
		if err := o.annotate(ctx, i, len(infos) > 1 || o.target.All); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

func (o *Options) annotate(ctx context.Context, i *resource.Info, several bool) error {
	if len(o.set)+len(o.remove) > 0 {
		if err := o.change(ctx, i); err != nil {
			return err
		}
	}
	if !o.list {
		return o.Show("annotated", i.Object)
	}
	indent := ""
	if several {
		indent = " "
		fmt.Fprintf(o.Out, "Listing annotations for %s.%s/%s:\n", i.Object.GetKind(), i.Mapping.GroupVersionKind.Group, i.Name)
	}
	annotations := i.Object.GetAnnotations()
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(o.Out, "%s%s=%s\n", indent, k, annotations[k])
	}
	return nil
}

func (o *Options) change(ctx context.Context, i *resource.Info) error {
	annotations := i.Object.GetAnnotations()
	if err := o.check(annotations); err != nil {
		return err
	}
	if o.local || o.DryRun == write.DryRunClient {
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, o.set)
		for _, k := range o.remove {
			delete(annotations, k)
		}
		i.Object.SetAnnotations(annotations)
		return nil
	}
	patch, err := write.MetadataPatch("annotations", o.set, o.remove, o.version)
	if err != nil {
		return err
	}
	return i.Patch(ctx, types.MergePatchType, patch, o.PatchOptions())
}

// check refuses to change values without --overwrite.
func (o *Options) check(annotations map[string]string) error {
	if o.overwrite {
		return nil
	}
	var taken []string
	for _, k := range slices.Sorted(maps.Keys(o.set)) {
		if old, ok := annotations[k]; ok && old != o.set[k] {
			taken = append(taken, fmt.Sprintf("'%s' already has a value (%s)", k, old))
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return fmt.Errorf("--overwrite is false but found the following declared annotation(s): %s", strings.Join(taken, "; "))
}
