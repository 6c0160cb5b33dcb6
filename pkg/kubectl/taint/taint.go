// Package taint is "kubectl taint": it adds, changes and removes the taints of nodes.
package taint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Update node 'foo' with a taint with key 'dedicated' and value 'special-user' and effect 'NoSchedule'
  # If a taint with that key and effect already exists, its value is replaced as specified
  kubectl taint nodes foo dedicated=special-user:NoSchedule

  # Remove from node 'foo' the taint with key 'dedicated' and effect 'NoSchedule' if one exists
  kubectl taint nodes foo dedicated:NoSchedule-

  # Remove from node 'foo' all the taints with key 'dedicated'
  kubectl taint nodes foo dedicated-`

// Options is one run of "kubectl taint".
type Options struct {
	write.Base
	target    write.Target
	args      []string
	overwrite bool
	changes   changes
	cmd       *cobra.Command
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-taint"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short:   "Update the taints on one or more nodes",
		Long:    "Update the taints on one or more nodes.\n\n A taint consists of a key, value, and effect. As an argument here, it is expressed as key=value:effect. The effect must be NoSchedule, PreferNoSchedule or NoExecute. Currently taint can only apply to node.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddValidate(set)
	set.StringVarP(&o.target.Selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.BoolVar(&o.target.All, "all", false, "Select all nodes in the cluster")
	set.BoolVar(&o.overwrite, "overwrite", false,
		"If true, allow taints to be overwritten, otherwise reject taint updates that overwrite existing taints.")
	return cmd
}

// Complete parts the arguments and gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	o.cmd = cmd
	var specs []string
	for _, a := range args {
		spec := strings.ContainsAny(a, "=:") || strings.HasSuffix(a, "-")
		switch {
		case spec:
			specs = append(specs, a)
		case len(specs) > 0:
			return fmt.Errorf("all resources must be specified before taint changes: %s", a)
		default:
			o.args = append(o.args, a)
		}
	}
	if len(o.args) == 0 {
		return errors.New("one or more resources must be specified as <resource> <name>")
	}
	if len(specs) == 0 {
		return errors.New("at least one taint update is required")
	}
	var err error
	if o.changes, err = parse(specs); err != nil {
		return cli.UsageErrorf(cmd, "%s", err.Error())
	}
	return o.CompleteWith(f)
}

// Validate wants nodes, and named or selected ones.
func (o *Options) Validate() error {
	m, err := o.Client.Mapping(o.args[0])
	if err != nil {
		return o.Said(fmt.Errorf("the server doesn't have a resource type %q", o.args[0]))
	}
	if m.GroupVersionKind.GroupKind() != corev1.SchemeGroupVersion.WithKind("Node").GroupKind() {
		return fmt.Errorf("invalid resource type %s, only node types are supported", o.args[0])
	}
	switch {
	case o.target.All && o.target.Selector != "":
		return errors.New("setting 'all' parameter with a non empty selector is prohibited")
	case len(o.args) < 2 && !o.target.All && o.target.Selector == "":
		return fmt.Errorf("at least one resource name must be specified since 'all' parameter is not set")
	case len(o.args) > 1 && o.target.All:
		return fmt.Errorf("cannot set 'all' parameter to true if any resource name is specified")
	}
	if err := o.changes.conflict(); err != nil {
		return err
	}
	_, err = o.Printer("tainted")
	return err
}

// Run changes the taints of each node.
func (o *Options) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx, o.target.Request(&o.Base, o.args))
	return resource.Each(infos, err, func(i *resource.Info) error { return o.taint(ctx, i) })
}

func (o *Options) taint(ctx context.Context, i *resource.Info) error {
	node := &corev1.Node{}
	if err := resource.FromUnstructured(i.Object, node); err != nil {
		return err
	}
	if !o.overwrite {
		if keys := o.changes.taken(node.Spec.Taints); len(keys) > 0 {
			return fmt.Errorf("node %s already has %s taint(s) with same effect(s) and --overwrite is false", i.Name,
				strings.Join(keys, ","))
		}
	}
	taints, result, err := o.changes.apply(node.Spec.Taints)
	if err != nil {
		return err
	}
	if o.overwrite {
		result = "modified"
	}
	if o.DryRun != write.DryRunClient {
		if err := o.patch(ctx, i, taints); err != nil {
			return err
		}
	}
	p, err := o.Print.Printer(result)
	if err != nil {
		return err
	}
	return p.Print(i.Object, o.Out)
}

func (o *Options) patch(ctx context.Context, i *resource.Info, taints []corev1.Taint) error {
	after := i.Object.DeepCopy()
	content, err := resource.ToUnstructured(&corev1.Node{Spec: corev1.NodeSpec{Taints: taints}},
		corev1.SchemeGroupVersion.WithKind("Node"))
	if err != nil {
		return err
	}
	spec, _ := content.Object["spec"].(map[string]any)
	old, _ := after.Object["spec"].(map[string]any)
	if old == nil {
		old = map[string]any{}
		after.Object["spec"] = old
	}
	if list, ok := spec["taints"]; ok {
		old["taints"] = list
	} else {
		delete(old, "taints")
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
		return err
	}
	return i.Patch(ctx, kind, patch, o.PatchOptions())
}
