// Package label is "kubectl label": it sets, changes and removes labels.
package label

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Update pod 'foo' with the label 'unhealthy' and the value 'true'
  kubectl label pods foo unhealthy=true

  # Update pod 'foo' with the label 'status' and the value 'unhealthy', overwriting any existing value
  kubectl label --overwrite pods foo status=unhealthy

  # Update pod 'foo' by removing a label named 'bar' if it exists
  # Does not require the --overwrite flag
  kubectl label pods foo bar-`

// Options is one run of "kubectl label".
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
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-label"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "label [--overwrite] (-f FILENAME | TYPE NAME) KEY_1=VAL_1 ... KEY_N=VAL_N [--resource-version=version]",
		Short:   "Update the labels on a resource",
		Long:    "Update the labels on a resource.\n\n If --overwrite is true, then existing labels can be overwritten, otherwise attempting to overwrite a label will result in an error. If --resource-version is specified, then updates will use this resource version, otherwise the existing resource-version will be used.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.target.AddFlags(set, "Filename, directory, or URL to files identifying the resource to update the labels")
	o.target.AddFieldSelector(set)
	o.target.AddAllNamespaces(set)
	set.BoolVar(&o.overwrite, "overwrite", false, "If true, allow labels to be overwritten, otherwise reject label updates that overwrite existing labels.")
	set.BoolVar(&o.list, "list", false, "If true, display the labels for a given resource.")
	set.BoolVar(&o.local, "local", false, "If true, label will NOT contact api-server but run locally.")
	set.StringVar(&o.version, "resource-version", "", "If non-empty, the labels update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.")
	return cmd
}

// Complete parts the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	objects, pairs, err := write.SplitPairs(args, "label")
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
	var remove []string
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		switch {
		case ok && strings.Contains(v, "="):
			return nil, nil, fmt.Errorf("invalid label spec: %v", p)
		case ok:
			if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
				return nil, nil, fmt.Errorf("invalid label value: %q: %s", p, strings.Join(errs, ";"))
			}
			set[k] = v
		default:
			remove = append(remove, strings.TrimSuffix(p, "-"))
		}
	}
	for _, k := range remove {
		if _, ok := set[k]; ok {
			return nil, nil, errors.New("can not both modify and remove a label in the same command")
		}
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
		return errors.New("at least one label update is required")
	}
	_, err := o.Printer("labeled")
	return err
}

// Run labels what it finds.
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
		if err := o.label(ctx, i, len(infos) > 1 || o.target.All); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

func (o *Options) label(ctx context.Context, i *resource.Info, several bool) error {
	result, err := o.change(ctx, i)
	if err != nil {
		return err
	}
	if !o.list {
		return o.Show(result, i.Object)
	}
	indent := ""
	if several {
		indent = " "
		fmt.Fprintf(o.Out, "Listing labels for %s.%s/%s:\n", i.Object.GetKind(), i.Mapping.GroupVersionKind.Group, i.Name)
	}
	labels := i.Object.GetLabels()
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(o.Out, "%s%s=%s\n", indent, k, labels[k])
	}
	return nil
}

// change makes the update and says what became of it.
func (o *Options) change(ctx context.Context, i *resource.Info) (string, error) {
	set, removed, err := o.differences(i.Object)
	if err != nil {
		return "", err
	}
	result := "not labeled"
	switch {
	case len(set) > 0 && len(removed) > 0:
		result = "modified"
	case len(set) > 0:
		result = "labeled"
	case len(removed) > 0:
		result = "unlabeled"
	case o.version == "":
		return result, nil
	}
	if o.local || o.DryRun == write.DryRunClient {
		labels := i.Object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, set)
		for _, k := range removed {
			delete(labels, k)
		}
		i.Object.SetLabels(labels)
		return result, nil
	}
	patch, err := write.MetadataPatch("labels", set, removed, o.version)
	if err != nil {
		return "", err
	}
	return result, i.Patch(ctx, types.MergePatchType, patch, o.PatchOptions())
}

// differences are the labels that really change. Those that are there with another value need --overwrite.
func (o *Options) differences(u *unstructured.Unstructured) (set map[string]string, removed []string, err error) {
	labels := u.GetLabels()
	set = map[string]string{}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(o.set)) {
		old, ok := labels[k]
		switch {
		case !ok:
			set[k] = o.set[k]
		case old == o.set[k]:
		case o.overwrite:
			set[k] = o.set[k]
		default:
			errs = append(errs, fmt.Errorf("'%s' already has a value (%s), and --overwrite is false", k, old))
		}
	}
	if len(errs) == 1 {
		return nil, nil, errs[0]
	}
	if len(errs) > 1 {
		return nil, nil, utilerrors.NewAggregate(errs)
	}
	for _, k := range o.remove {
		if _, ok := labels[k]; ok {
			removed = append(removed, k)
		} else {
			fmt.Fprintf(o.ErrOut, "label %q not found.\n", k)
		}
	}
	return set, removed, nil
}
