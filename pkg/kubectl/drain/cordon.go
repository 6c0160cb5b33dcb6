// Package drain is "kubectl drain", "cordon" and "uncordon": it keeps new pods off nodes and moves the old ones away.
package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// nodes are the nodes a command is about.
type nodes struct {
	write.Base
	selector string
	args     []string
}

func (n *nodes) addFlags(cmd *cobra.Command) {
	n.AddDryRun(cmd.Flags())
	cmd.Flags().StringVarP(&n.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
}

// Complete takes the nodes' names.
func (n *nodes) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && n.selector == "":
		return cli.UsageErrorf(cmd, "USAGE: %s [flags]", cmd.Use)
	case len(args) > 0 && n.selector != "":
		return cli.UsageErrorf(cmd, "cannot specify both a node name and a --selector option")
	}
	n.args = args
	return n.CompleteWith(f)
}

// Validate has nothing to judge.
func (n *nodes) Validate() error { return nil }

// find reads the nodes. If several do not exist, its error names the first alone, as upstream does.
func (n *nodes) find(ctx context.Context) ([]*resource.Info, error) {
	infos, err := n.Client.Resolve(ctx, resource.Request{
		Args: append([]string{"nodes"}, n.args...), LabelSelector: n.selector, Namespace: n.Namespace,
	})
	if several := utilerrors.Aggregate(nil); errors.As(err, &several) {
		err = several.Errors()[0]
	}
	return infos, err
}

// mark sets spec.unschedulable of each node and prints the result. A node that fails does not stop the others.
func (n *nodes) mark(ctx context.Context, infos []*resource.Info, unschedulable bool) error {
	result := "uncordoned"
	if unschedulable {
		result = "cordoned"
	}
	var errs []error
	for _, i := range infos {
		is, _, _ := unstructured.NestedBool(i.Object.Object, "spec", "unschedulable")
		if is == unschedulable {
			fmt.Fprintf(n.Out, "node/%s already %s%s\n", i.Name, result, n.Suffix())
			continue
		}
		if n.DryRun != write.DryRunClient {
			patch := `{"spec":{"unschedulable":true}}`
			if !unschedulable {
				patch = `{"spec":{"unschedulable":null}}` // the field is removed: false is its default
			}
			if err := i.Patch(ctx, types.StrategicMergePatchType, []byte(patch), n.PatchOptions()); err != nil {
				errs = append(errs, fmt.Errorf("unable to %s node %q: %w", result[:len(result)-2], i.Name, err))
				continue
			}
		}
		fmt.Fprintf(n.Out, "node/%s %s%s\n", i.Name, result, n.Suffix())
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

// cordon is "kubectl cordon" and "uncordon".
type cordon struct {
	nodes
	unschedulable bool
}

// NewCordon makes the command "cordon".
func NewCordon(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return newCordon(f, streams, true, "cordon NODE", "Mark node as unschedulable")
}

// NewUncordon makes the command "uncordon".
func NewUncordon(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return newCordon(f, streams, false, "uncordon NODE", "Mark node as schedulable")
}

func newCordon(f *cli.Factory, streams cli.IOStreams, unschedulable bool, use, short string) *cobra.Command {
	o := &cordon{nodes: nodes{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}},
		unschedulable: unschedulable}
	cmd := &cobra.Command{Use: use, Short: short, Long: short + ".",
		Example: fmt.Sprintf("# %s\nkubectl %s node1", short, strings.Fields(use)[0]), RunE: cli.RunE(f, o)}
	o.addFlags(cmd)
	return cmd
}

// Run marks the nodes.
func (o *cordon) Run(ctx context.Context) error {
	infos, err := o.find(ctx)
	if err != nil {
		return err
	}
	return o.mark(ctx, infos, o.unschedulable)
}
