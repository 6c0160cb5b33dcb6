// Package top shows what nodes and pods use of CPU and memory, as the metrics API (metrics.k8s.io) tells it.
package top

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"bonsai/pkg/kubectl/cli"
	kubectl "bonsai/pkg/kubectl/resource"
)

// NewCommand returns "kubectl top".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Display resource (CPU/memory) usage",
		Long: "Display resource (CPU/memory) usage.\n\n This command provides a view of recent resource consumption for nodes and pods. It fetches metrics from the Metrics Server, " +
			"which must be installed and running in the cluster. The values are made for autoscaling decisions and may not match those of tools such as 'top' on the node.",
		RunE: cli.Group,
	}
	cmd.AddCommand(newNode(f, streams), newPod(f, streams))
	return cmd
}

// metrics is one NodeMetrics or PodMetrics of metrics.k8s.io, whose versions have the same fields.
type metrics struct {
	metav1.ObjectMeta `json:"metadata"`
	Usage             corev1.ResourceList `json:"usage"`
	Containers        []container         `json:"containers"`
}

type container struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

const (
	group = "metrics.k8s.io"
	swap  = corev1.ResourceName("swap")
)

// versions are those of group that the commands know, the better ones first.
var versions = []string{"v1", "v1beta1"}

// common are the flags of both commands.
type common struct {
	cli.IOStreams
	name, selector, sortBy string
	noHeaders, swap        bool

	client *kubectl.Client
	// version is the one of versions that the server has.
	version string
}

func (c *common) addFlags(cmd *cobra.Command, what string) {
	set := cmd.Flags()
	set.BoolVar(&c.noHeaders, "no-headers", false, "If present, print output without headers.")
	set.StringVarP(&c.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.BoolVar(&c.swap, "show-swap", false, "Print "+what+" resources related to swap memory.")
	set.StringVar(&c.sortBy, "sort-by", "",
		"If non-empty, sort "+what+"s list using specified field. The field can be either 'cpu' or 'memory'.")
	set.Bool("use-protocol-buffers", true, "Accepted for compatibility; the metrics API is always asked for JSON.")
}

func (c *common) complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if len(args) > 1 {
		return cli.UsageErrorf(cmd, "%s", cmd.Use)
	}
	if len(args) == 1 {
		c.name = args[0]
	}
	if c.sortBy != "" && c.sortBy != "cpu" && c.sortBy != "memory" {
		return errors.New("--sort-by accepts only cpu or memory")
	}
	known, err := f.Discovery()
	if err != nil {
		return err
	}
	c.version, err = served(known)
	if err == nil && c.version == "" { // what is kept of the server's groups may be older than its metrics
		known.Invalidate()
		c.version, err = served(known)
	}
	switch {
	case err != nil:
		return err
	case c.version == "":
		return errors.New("Metrics API not available") //nolint:staticcheck // upstream's words
	}
	c.client, err = f.Resources()
	return err
}

// served returns the version of the metrics API to ask, "" if the server has none that we know.
func served(by discovery.ServerGroupsInterface) (string, error) {
	all, err := by.ServerGroups()
	if err != nil {
		return "", err
	}
	for _, version := range versions {
		has := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
		if slices.ContainsFunc(all.Groups, func(g metav1.APIGroup) bool {
			return g.Name == group && slices.Contains(g.Versions, has)
		}) {
			return version, nil
		}
	}
	return "", nil
}

// read asks for the metrics of one object, or of all.
func (c *common) read(ctx context.Context, path []string, fieldSelector string) ([]metrics, error) {
	path = append([]string{"apis", group, c.version}, path...)
	query := url.Values{}
	for name, value := range map[string]string{"labelSelector": c.selector, "fieldSelector": fieldSelector} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if c.name != "" {
		path, query = append(path, c.name), nil
	}
	raw, err := c.client.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if c.name != "" {
		one := metrics{}
		err = json.Unmarshal(raw, &one)
		return []metrics{one}, err
	}
	list := struct {
		Items []metrics `json:"items"`
	}{}
	err = json.Unmarshal(raw, &list)
	return list.Items, err
}

// more orders what is used: the larger first.
func (c *common) more(a, b corev1.ResourceList) int {
	x, y := a[corev1.ResourceName(c.sortBy)], b[corev1.ResourceName(c.sortBy)]
	return y.Cmp(x)
}

// columns are the resources that are shown, in their order.
func (c *common) columns() []corev1.ResourceName {
	if c.swap {
		return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, swap}
	}
	return []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
}

// add adds what to sum.
func add(sum, what corev1.ResourceList) {
	for name, q := range what {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

// heading is a column's: "CPU(cores)".
func heading(r corev1.ResourceName) string {
	switch r {
	case corev1.ResourceCPU:
		return "CPU(cores)"
	case corev1.ResourceMemory:
		return "MEMORY(bytes)"
	}
	return "SWAP(bytes)"
}

// amount is a value as people read it: millicores or mebibytes.
func amount(r corev1.ResourceName, q resource.Quantity) string {
	if r == corev1.ResourceCPU {
		return format(q.MilliValue(), "m")
	}
	return format(q.Value()/(1<<20), "Mi")
}
