package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Drain node "foo", even if there are pods not managed by a controller on it
  kubectl drain foo --force

  # As above, but abort if there are pods not managed by a controller, and use a grace period of 15 minutes
  kubectl drain foo --grace-period=900`

// Options is one run of "kubectl drain".
type Options struct {
	// chunk is the page size of lists, 0 for none.
	chunk int64
	nodes
	limits
	podSelector     string
	grace           int
	timeout         time.Duration
	disableEviction bool
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{nodes: nodes{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}}
	cmd := &cobra.Command{
		Use:     "drain NODE",
		Short:   "Drain node in preparation for maintenance",
		Long:    "Drain node in preparation for maintenance.\n\n The given node will be marked unschedulable to prevent new pods from arriving. 'drain' evicts the pods if the API server supports disruptions. Otherwise, it will use normal DELETE to delete the pods. The 'drain' evicts or deletes all pods except mirror pods (which cannot be deleted through the API server).",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.nodes.addFlags(cmd)
	set := cmd.Flags()
	set.BoolVar(&o.force, "force", false, "Continue even if there are pods that do not declare a controller.")
	set.BoolVar(&o.ignoreDaemonSets, "ignore-daemonsets", false, "Ignore DaemonSet-managed pods.")
	set.BoolVar(&o.deleteEmptyDir, "delete-emptydir-data", false,
		"Continue even if there are pods using emptyDir (local data that will be deleted when the node is drained).")
	set.IntVar(&o.grace, "grace-period", -1,
		"Period of time in seconds given to each pod to terminate gracefully. If negative, the default value specified in the pod will be used.")
	set.DurationVar(&o.timeout, "timeout", 0, "The length of time to wait before giving up, zero means infinite")
	set.StringVar(&o.podSelector, "pod-selector", "", "Label selector to filter pods on the node")
	set.BoolVar(&o.disableEviction, "disable-eviction", false,
		"Force drain to use delete, even if eviction is supported. This will bypass checking PodDisruptionBudgets, use with caution.")
	set.Int64Var(&o.chunk, "chunk-size", 500,
		"Return large lists in chunks rather than all at once. Pass 0 to disable.")
	set.IntVar(&o.skipDeleted, "skip-wait-for-delete-timeout", 0,
		"If pod DeletionTimestamp older than N seconds, skip waiting for the pod.  Seconds must be greater than 0 to skip.")
	return cmd
}

// Validate checks the pods' selector.
func (o *Options) Validate() error {
	if _, err := labels.Parse(o.podSelector); err != nil {
		return errors.New("--pod-selector=<pod_selector> must be a valid label selector")
	}
	return nil
}

// Run cordons all nodes first, so that no pod moves from one of them to the next, and then drains one after the other.
// If a node cannot be drained, Run continues with the next one, and returns the errors of all.
func (o *Options) Run(ctx context.Context) error {
	infos, err := o.find(ctx)
	if err != nil {
		return err
	}
	if err := o.mark(ctx, infos, true); err != nil {
		return err
	}
	var errs []error
	var pending []string
	for _, i := range infos {
		if err := o.drain(ctx, i); err != nil {
			pending = append(pending, i.Name)
			errs = append(errs, err)
			fmt.Fprintf(o.ErrOut, "error: unable to drain node %q due to error: %s, continuing command...\n", i.Name,
				err)
			continue
		}
		fmt.Fprintf(o.Out, "node/%s drained%s\n", i.Name, o.Suffix())
	}
	if len(pending) > 0 {
		fmt.Fprintf(o.ErrOut, "There are pending nodes to be drained:\n")
		for _, n := range pending {
			fmt.Fprintf(o.ErrOut, " %s\n", n)
		}
	}
	all := utilerrors.Flatten(utilerrors.NewAggregate(errs))
	if all == nil || len(all.Errors()) > 1 {
		return utilerrors.NewAggregate(errs)
	}
	return o.Said(all.Errors()[0])
}

// drain moves the pods of one node away. It moves none if a pod may not be moved: the user decides by flags first.
func (o *Options) drain(ctx context.Context, node *resource.Info) error {
	all, err := o.podsOf(ctx, node.Name)
	if err != nil {
		return err
	}
	move, warning, err := o.choose(all, time.Now())
	if err != nil {
		return err
	}
	if warning != "" {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", warning)
	}
	if err := o.removeAll(ctx, move); err != nil {
		if left, e := o.podsOf(ctx, node.Name); e == nil {
			o.showPending(node.Name, left, err)
		}
		return err
	}
	return nil
}

// showPending lists the pods that are still on the node after a failure.
func (o *Options) showPending(node string, left []corev1.Pod, err error) {
	pending, _, _ := o.choose(left, time.Now())
	fmt.Fprintf(o.ErrOut, "There are pending pods in node %q when an error occurred: %v\n", node, err)
	for i := range pending {
		fmt.Fprintf(o.ErrOut, "pod/%s\n", pending[i].Name)
	}
}

// podsOf lists the pods of a node in all namespaces that --pod-selector selects.
func (o *Options) podsOf(ctx context.Context, node string) ([]corev1.Pod, error) {
	list, err := o.Client.List(ctx, pods.Mapping(), "", metav1.ListOptions{
		LabelSelector: o.podSelector, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
		Limit: o.chunk,
	})
	if err != nil {
		return nil, err
	}
	out := make([]corev1.Pod, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
