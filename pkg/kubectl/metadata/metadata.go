// Package metadata is what "kubectl label" and "kubectl annotate" share: both set and remove keys of one map of an
// object's metadata. What differs (words, which keys are allowed, which changes count) is a Kind.
package metadata

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// Kind is one of the maps and how its verb treats it.
type Kind struct {
	// Noun names one entry ("label"), Nouns the map as it is called below metadata ("labels"), Done the result
	// ("labeled").
	Noun, Nouns, Done string
	// File is what a file is called in the error that asks for one ("pod" for pod.yaml).
	File string
	// ListAlone refuses --list together with -o.
	ListAlone bool
	// Parse reads the arguments "key=value" and "key-".
	Parse func(pairs []string) (Change, error)
	// Judge says what is sent of the change o.Change to an object whose map is now current, and how the result is
	// called. A nil change sends nothing.
	Judge func(o *Options, current map[string]string) (*Change, string, error)
}

// Change is what to set and which keys to remove.
type Change struct {
	Set    map[string]string
	Remove []string
}

// Empty reports whether there is nothing to do.
func (c *Change) Empty() bool { return len(c.Set)+len(c.Remove) == 0 }

// Options is one run of such a verb.
type Options struct {
	write.Base
	// Overwrite, List, Local and Version are the flags of these names (Version is --resource-version).
	Overwrite, List, Local bool
	Version                string
	// Change is what the arguments ask for.
	Change Change

	kind   Kind
	target write.Target
	args   []string
}

// New returns the options of a verb that writes as manager.
func New(kind Kind, manager string, streams cli.IOStreams) *Options {
	return &Options{Base: write.Base{Flags: write.NewFlags(manager), IOStreams: streams}, kind: kind}
}

// Usage is the help of the flags whose words differ from verb to verb.
type Usage struct {
	Files, Overwrite, List, Local, Version string
	// Recursive tells that directories are read recursively unless the user says otherwise.
	Recursive bool
}

// AddFlags adds the flags.
func (o *Options) AddFlags(cmd *cobra.Command, u Usage) {
	set := cmd.Flags()
	o.AddRecord(cmd)
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.target.Files.Recursive = u.Recursive
	o.target.AddFlags(set, u.Files)
	o.target.AddFieldSelector(set)
	o.target.AddAllNamespaces(set)
	set.BoolVar(&o.Overwrite, "overwrite", false, u.Overwrite)
	set.BoolVar(&o.List, "list", false, u.List)
	set.BoolVar(&o.Local, "local", false, u.Local)
	set.StringVar(&o.Version, "resource-version", "", u.Version)
}

// Complete parts the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	objects, pairs, err := write.SplitPairs(args, o.kind.Noun)
	if err != nil {
		return err
	}
	o.args = objects
	if o.Change, err = o.kind.Parse(pairs); err != nil {
		return err
	}
	return o.CompleteWith(f)
}

// Validate judges the arguments.
func (o *Options) Validate() error {
	switch {
	case o.target.All && o.target.Selector != "":
		return errors.New("cannot set --all and --selector at the same time")
	case o.target.All && o.target.FieldSelector != "":
		return errors.New("cannot set --all and --field-selector at the same time")
	case o.Local && len(o.args) > 0:
		return fmt.Errorf("can only use local files by -f %[1]s.yaml or --filename=%[1]s.json when --local=true is set",
			o.kind.File)
	case o.List && o.Print.Output != "" && o.kind.ListAlone:
		return errors.New("--list and --output may not be specified together")
	case len(o.args) == 0 && o.target.Files.Empty():
		return write.ErrNoObjects
	case o.Change.Empty() && !o.List:
		return fmt.Errorf("at least one %s update is required", o.kind.Noun)
	}
	_, err := o.Printer(o.kind.Done)
	return err
}

// Run changes what it finds.
func (o *Options) Run(ctx context.Context) error {
	q := o.target.Request(&o.Base, o.args)
	q.Latest, q.Local = !o.Local, o.Local
	infos, err := o.Client.Resolve(ctx, q)
	if o.Version != "" && (len(infos) > 1 || o.target.All || o.target.Selector != "") {
		return errors.New("--resource-version may only be used with a single resource")
	}
	several := len(infos) > 1 || err != nil || o.target.All
	return resource.Each(infos, err, func(i *resource.Info) error { return o.one(ctx, i, several) })
}

// one changes one object and shows the result, or with --list its map.
func (o *Options) one(ctx context.Context, i *resource.Info, several bool) error {
	change, result, err := o.kind.Judge(o, o.current(i.Object))
	if err != nil {
		return err
	}
	if change != nil {
		if err := o.apply(ctx, i, change); err != nil {
			return err
		}
	}
	if !o.List {
		return o.Show(result, i.Object)
	}
	indent := ""
	if several {
		indent = " "
		fmt.Fprintf(o.Out, "Listing %s for %s.%s/%s:\n", o.kind.Nouns, i.Object.GetKind(),
			i.Mapping.GroupVersionKind.Group, i.Name)
	}
	now := o.current(i.Object)
	for _, k := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(o.Out, "%s%s=%s\n", indent, k, now[k])
	}
	return nil
}

// current is the object's map; nil if it has none.
func (o *Options) current(u *unstructured.Unstructured) map[string]string {
	m, _, _ := unstructured.NestedNullCoercingStringMap(u.Object, "metadata", o.kind.Nouns)
	return m
}

// apply sends the change, or makes it here if nothing is to be sent.
func (o *Options) apply(ctx context.Context, i *resource.Info, c *Change) error {
	if o.Local || o.List || o.DryRun == write.DryRunClient {
		m := o.current(i.Object)
		if m == nil {
			m = map[string]string{}
		}
		maps.Copy(m, c.Set)
		for _, k := range c.Remove {
			delete(m, k)
		}
		return o.keep(i.Object, m)
	}
	patch, err := write.MetadataPatch(o.kind.Nouns, c.Set, c.Remove, o.Version)
	if err != nil {
		return err
	}
	if err := i.Patch(ctx, types.MergePatchType, patch, o.PatchOptions()); err != nil {
		return err
	}
	return o.RecordPatch(ctx, i)
}

// keep makes m the object's map.
func (o *Options) keep(u *unstructured.Unstructured, m map[string]string) error {
	if err := unstructured.SetNestedStringMap(u.Object, m, "metadata", o.kind.Nouns); err != nil {
		return fmt.Errorf("set the %s of %s %q: %w", o.kind.Nouns, u.GetKind(), u.GetName(), err)
	}
	return nil
}
