package top

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubectl/cli"
)

// nodes is one run of top node.
type nodes struct {
	common
	capacity bool
}

func newNode(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &nodes{common: common{IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "node [NAME | -l label]",
		Aliases: []string{"nodes", "no"},
		Short:   "Display resource (CPU/memory) usage of nodes",
		Long:    "Display resource (CPU/memory) usage of nodes.\n\n The top-node command allows you to see the resource consumption of nodes.",
		Example: "# Show metrics for all nodes\nkubectl top node\n\n# Show metrics for a given node\nkubectl top node NODE_NAME",
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd, "node")
	cmd.Flags().BoolVar(&o.capacity, "show-capacity", false,
		"Print node resources based on Capacity instead of Allocatable(default) of the nodes.")
	return cmd
}

// Complete implements cli.Options.
func (o *nodes) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	return o.complete(f, cmd, args)
}

// Validate implements cli.Options.
func (o *nodes) Validate() error {
	if o.name != "" && o.selector != "" {
		return errors.New("only one of NAME or --selector can be provided")
	}
	return nil
}

// Run implements cli.Options.
func (o *nodes) Run(ctx context.Context) error {
	all, err := o.read(ctx, []string{"nodes"}, "")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("metrics not available yet")
	}
	known, err := o.known(ctx)
	if err != nil {
		return err
	}
	return o.show(all, known)
}

// known are the nodes that are meant.
func (o *nodes) known(ctx context.Context) ([]corev1.Node, error) {
	path, query := []string{"api", "v1", "nodes"}, url.Values{}
	if o.name != "" {
		path = append(path, o.name)
	} else if o.selector != "" {
		query.Set("labelSelector", o.selector)
	}
	raw, err := o.client.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if o.name != "" {
		one := corev1.Node{}
		err = json.Unmarshal(raw, &one)
		return []corev1.Node{one}, err
	}
	list := corev1.NodeList{}
	err = json.Unmarshal(raw, &list)
	return list.Items, err
}

// unknown stands for what nobody has told.
const unknown = "<unknown>"

// show prints a row for each node: first those with metrics, then, in the order of their names, those without.
func (o *nodes) show(all []metrics, known []corev1.Node) error {
	t := newTable(o.Out)
	if !o.noHeaders {
		cells := []string{"NAME"}
		for _, r := range o.columns() {
			name, _, _ := strings.Cut(heading(r), "(")
			cells = append(cells, heading(r), name+"(%)")
		}
		t.row(cells...)
	}
	slices.SortStableFunc(all, func(a, b metrics) int {
		if o.sortBy != "" {
			return o.more(a.Usage, b.Usage)
		}
		return strings.Compare(a.Name, b.Name)
	})
	there := map[string]*corev1.Node{}
	for i := range known {
		there[known[i].Name] = &known[i]
	}
	for _, m := range all {
		cells := []string{m.Name}
		for _, r := range o.columns() {
			cells = append(cells, o.cells(r, m.Usage[r], there[m.Name])...)
		}
		t.row(cells...)
		delete(there, m.Name)
	}
	for _, n := range known {
		if there[n.Name] == nil {
			continue
		}
		cells := []string{n.Name}
		for range o.columns() {
			cells = append(cells, unknown, unknown)
		}
		t.row(cells...)
	}
	return t.Flush()
}

// cells are a value and how much it is of what the node has. Of a node that is not there only the value is known.
func (o *nodes) cells(r corev1.ResourceName, used resource.Quantity, n *corev1.Node) []string {
	if n == nil {
		return []string{amount(r, used)}
	}
	has, ok := o.available(r, n)
	if !ok {
		return []string{unknown, unknown}
	}
	percent := "0%"
	if has.MilliValue() != 0 {
		percent = format(int64(float64(used.MilliValue())/float64(has.MilliValue())*100), "%")
	}
	return []string{amount(r, used), percent}
}

// available is what the node has of a resource.
func (o *nodes) available(r corev1.ResourceName, n *corev1.Node) (resource.Quantity, bool) {
	if r == swap {
		s := n.Status.NodeInfo.Swap
		if s == nil || s.Capacity == nil {
			return resource.Quantity{}, false
		}
		return *resource.NewQuantity(*s.Capacity, resource.BinarySI), true
	}
	from := n.Status.Allocatable
	if o.capacity {
		from = n.Status.Capacity
	}
	q, ok := from[r]
	return q, ok
}
