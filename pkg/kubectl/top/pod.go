package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
)

// pods is one run of top pod.
type pods struct {
	common
	namespace, fieldSelector      string
	everywhere, containers, total bool
	now                           func() time.Time
}

func newPod(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &pods{common: common{IOStreams: streams}, now: time.Now}
	cmd := &cobra.Command{
		Use:     "pod [NAME | -l label]",
		Aliases: []string{"pods", "po"},
		Short:   "Display resource (CPU/memory) usage of pods",
		Long: "Display resource (CPU/memory) usage of pods.\n\n The 'top pod' command allows you to see the resource consumption of pods.\n\n" +
			" Due to the metrics pipeline delay, they may be unavailable for a few minutes since pod creation.",
		Example: "# Show metrics for all pods in the default namespace\nkubectl top pod\n\n# Show metrics for all pods in the given namespace\nkubectl top pod --namespace=NAMESPACE\n\n" +
			"# Show metrics for a given pod and its containers\nkubectl top pod POD_NAME --containers\n\n# Show metrics for the pods defined by label name=myLabel\nkubectl top pod -l name=myLabel",
		RunE: cli.RunE(f, o),
	}
	o.addFlags(cmd, "pod")
	set := cmd.Flags()
	set.StringVar(&o.fieldSelector, "field-selector", "",
		"Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	set.BoolVar(&o.containers, "containers", false, "If present, print usage of containers within a pod.")
	set.BoolVarP(&o.everywhere, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.BoolVar(&o.total, "sum", false, "Print the sum of the resource usage")
	return cmd
}

// Complete implements cli.Options.
func (o *pods) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if o.namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	return o.complete(f, cmd, args)
}

// Validate implements cli.Options.
func (o *pods) Validate() error {
	if o.name != "" && (o.selector != "" || o.fieldSelector != "") {
		return errors.New("only one of NAME or selector can be provided")
	}
	return nil
}

// Run implements cli.Options.
func (o *pods) Run(ctx context.Context) error {
	all, err := o.read(ctx, o.place("pods"), o.fieldSelector)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return o.none(ctx)
	}
	return o.show(all)
}

// place is the rest of a path to pods.
func (o *pods) place(resource string) []string {
	if o.everywhere {
		return []string{resource}
	}
	return []string{"namespaces", o.namespace, resource}
}

// late is how old a pod may be without metrics.
const late = 2 * time.Minute

// none tells why there are no metrics: there are no pods, or they are young, or something is wrong.
func (o *pods) none(ctx context.Context) error {
	query := url.Values{}
	for name, value := range map[string]string{"labelSelector": o.selector, "fieldSelector": o.fieldSelector} {
		if value != "" {
			query.Set(name, value)
		}
	}
	raw, err := o.client.Do(ctx, http.MethodGet, append([]string{"api", "v1"}, o.place("pods")...), query, nil)
	if err != nil {
		return err
	}
	list := corev1.PodList{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		if o.everywhere {
			fmt.Fprintln(o.ErrOut, "No resources found")
		} else {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.namespace)
		}
		return nil
	}
	for _, p := range list.Items {
		if age := o.now().Sub(p.CreationTimestamp.Time); age > late {
			//nolint:staticcheck // upstream's words
			return fmt.Errorf("Metrics not available for pod %s/%s, age: %s", p.Namespace, p.Name, age)
		}
	}
	return errors.New("metrics not available yet")
}

// show prints a row for each pod, or each container, and the sum of what all of them use.
func (o *pods) show(all []metrics) error {
	usage := func(m metrics) corev1.ResourceList {
		sum := corev1.ResourceList{}
		for _, c := range m.Containers {
			add(sum, c.Usage)
		}
		return sum
	}
	slices.SortStableFunc(all, func(a, b metrics) int {
		if o.sortBy != "" {
			return o.more(usage(a), usage(b))
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	t := newTable(o.Out)
	var names []string
	if o.everywhere {
		names = append(names, "NAMESPACE")
	}
	if o.containers {
		names = append(names, "POD")
	}
	names = append(names, "NAME")
	if !o.noHeaders {
		cells := slices.Clone(names)
		for _, r := range o.columns() {
			cells = append(cells, heading(r))
		}
		t.row(cells...)
	}
	sum := corev1.ResourceList{}
	for _, m := range all {
		add(sum, usage(m))
		var cells []string
		if o.everywhere {
			cells = append(cells, m.Namespace)
		}
		cells = append(cells, m.Name)
		if !o.containers {
			t.row(append(cells, o.amounts(usage(m))...)...)
			continue
		}
		slices.SortStableFunc(m.Containers, func(a, b container) int {
			if o.sortBy != "" {
				return o.more(a.Usage, b.Usage)
			}
			return strings.Compare(a.Name, b.Name)
		})
		for _, c := range m.Containers {
			t.row(append(append(slices.Clone(cells), c.Name), o.amounts(c.Usage)...)...)
		}
	}
	if o.total {
		blank := make([]string, len(names))
		t.row(append(slices.Clone(blank), slices.Repeat([]string{"________"}, len(o.columns()))...)...)
		t.row(append(blank, o.amounts(sum)...)...)
	}
	return t.Flush()
}

func (o *pods) amounts(used corev1.ResourceList) []string {
	var cells []string
	for _, r := range o.columns() {
		cells = append(cells, amount(r, used[r]))
	}
	return cells
}
