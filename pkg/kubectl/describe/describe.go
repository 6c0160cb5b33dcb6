// Package describe shows objects at length: their fields, related objects and events. Words, order and blanks of every
// description are upstream's, since people compare them and scripts parse them.
package describe

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of describe.
type Options struct {
	cli.IOStreams
	request resource.Request
	events  bool
	// eventsSaid says that the user gave --show-events: then it also holds for several objects.
	eventsSaid bool
	client     *resource.Client
}

// NewCommand returns "kubectl describe".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:     "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME)",
		Short:   "Show details of a specific resource or group of resources",
		Long:    "Show details of a specific resource or group of resources.\n\n Print a detailed description of the selected resources, including related resources such as events.",
		Example: "\n# Describe a node\nkubectl describe nodes kubernetes-node-emt8.c.myproject.internal\n\n# Describe a pod\nkubectl describe pods/nginx",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.request.Files.AddFlags(set, "Filename, directory, or URL to files containing the resource to describe")
	set.StringVarP(&o.request.LabelSelector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.BoolVarP(&o.request.AllNamespaces, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.BoolVar(&o.events, "show-events", true, "If true, display events related to the described object.")
	set.Int64Var(&o.request.Limit, "chunk-size", 500,
		"Return large lists in chunks rather than all at once. Pass 0 to disable.")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if len(args) == 0 && o.request.Files.Empty() {
		return fmt.Errorf("You must specify the type of resource to describe. Use \"kubectl api-resources\" for a complete list of supported resources.")
	}
	if o.request.Namespace, o.request.ExplicitNamespace, err = f.Namespace(); err != nil {
		return err
	}
	o.request.Args, o.request.Lists, o.request.Latest = args, true, true
	o.eventsSaid = cmd.Flags().Changed("show-events")
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error { return nil }

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	infos, err := o.client.Resolve(ctx, o.request)
	if apierrors.IsNotFound(err) && len(o.request.Args) == 2 {
		matches, err := o.byPrefix(ctx, err)
		if err != nil {
			return err
		}
		return o.matches(ctx, matches)
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	if (len(infos) > 1 || err != nil) && !o.eventsSaid {
		o.events = false // they cost one more request per object
	}
	for n, i := range infos {
		if n > 0 {
			fmt.Fprint(o.Out, "\n\n")
		}
		if err := o.one(ctx, i); err != nil {
			errs = append(errs, err)
		}
	}
	if len(infos) == 0 && len(errs) == 0 {
		if o.request.AllNamespaces {
			fmt.Fprintln(o.ErrOut, "No resources found")
		} else {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.request.Namespace)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// matches describes the objects whose names begin with the argument, without events, and stops at the first error.
func (o *Options) matches(ctx context.Context, infos []*resource.Info) error {
	o.events = false
	for _, i := range infos {
		if err := o.one(ctx, i); err != nil {
			return err
		}
		fmt.Fprintln(o.Out)
	}
	return nil
}

// byPrefix returns the objects whose names begin with the argument, or the error notFound if there are none.
func (o *Options) byPrefix(ctx context.Context, notFound error) ([]*resource.Info, error) {
	q := o.request
	prefix := q.Args[1]
	q.Args = q.Args[:1]
	all, err := o.client.Resolve(ctx, q)
	if err != nil {
		return nil, notFound
	}
	var out []*resource.Info
	for _, i := range all {
		if strings.HasPrefix(i.Name, prefix) {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, notFound
	}
	return out, nil
}

// describer is the description of one object: where it is written, and what may be read for it. A function that only
// writes takes the writer alone, so that its signature shows that it makes no request.
type describer struct {
	*writer
	ctx    context.Context // ends the description
	client *resource.Client
	info   *resource.Info
	now    time.Time
	chunk  int64       // the page size of lists, 0 for none
	pod    *corev1.Pod // whose fields its containers' variables show, nil for templates
}

// one describes one object. The text goes through a tabwriter, which aligns the cells of columns.
func (o *Options) one(ctx context.Context, info *resource.Info) error {
	t := tabwriter.NewWriter(o.Out, 0, 8, 2, ' ', 0)
	d := &describer{writer: &writer{w: t}, ctx: ctx, client: o.client, info: info, now: time.Now(),
		chunk: o.request.Limit}
	describe, known := kinds()[info.Mapping.GroupVersionKind.GroupKind().String()]
	if !known {
		describe = kind{generic, true}
	}
	if err := describe.write(d, info.Object); err != nil {
		return err
	}
	if o.events && describe.events {
		if err := writeEventTable(d); err != nil {
			return err
		}
	}
	return t.Flush()
}

// kind says how to describe objects of one kind, and whether their events follow.
type kind struct {
	write  func(*describer, *unstructured.Unstructured) error
	events bool
}

// kinds returns the kinds with a description of their own, by KIND.GROUP. generic describes all others, custom
// resources included, field by field.
func kinds() map[string]kind {
	return map[string]kind{
		"Pod":                                   {typed(pod), true},
		"Deployment.apps":                       {typed(deployment), true},
		"ReplicaSet.apps":                       {typed(replicaSet), true},
		"StatefulSet.apps":                      {typed(statefulSet), true},
		"DaemonSet.apps":                        {typed(daemonSet), true},
		"ReplicationController":                 {typed(replicationController), true},
		"Job.batch":                             {typed(job), true},
		"CronJob.batch":                         {typed(cronJob), true},
		"Node":                                  {typed(node), true},
		"Service":                               {typed(service), true},
		"Namespace":                             {typed(namespace), false},
		"PersistentVolume":                      {typed(persistentVolume), true},
		"PersistentVolumeClaim":                 {typed(persistentVolumeClaim), true},
		"ResourceQuota":                         {typed(resourceQuota), false},
		"LimitRange":                            {typed(limitRange), false},
		"ConfigMap":                             {typed(configMap), true},
		"Secret":                                {typed(secret), false},
		"ServiceAccount":                        {typed(serviceAccount), true},
		"Endpoints":                             {typed(endpoints), true},
		"EndpointSlice.discovery.k8s.io":        {typed(endpointSlice), true},
		"Role.rbac.authorization.k8s.io":        {typed(role), false},
		"ClusterRole.rbac.authorization.k8s.io": {typed(clusterRole), false},
		"RoleBinding.rbac.authorization.k8s.io": {typed(roleBinding), false},
		"ClusterRoleBinding.rbac.authorization.k8s.io":  {typed(clusterRoleBinding), false},
		"PriorityClass.scheduling.k8s.io":               {typed(priorityClass), true},
		"PodDisruptionBudget.policy":                    {typed(disruptionBudget), true},
		"CertificateSigningRequest.certificates.k8s.io": {typed(signingRequest), true},
		"HorizontalPodAutoscaler.autoscaling":           {anyAutoscaler, true},
		"Ingress.networking.k8s.io":                     {typed(ingress), true},
		"IngressClass.networking.k8s.io":                {typed(ingressClass), true},
		"IPAddress.networking.k8s.io":                   {typed(ipAddress), true},
		"ServiceCIDR.networking.k8s.io":                 {typed(serviceCIDR), true},
		"StorageClass.storage.k8s.io":                   {typed(storageClass), true},
		"VolumeAttributesClass.storage.k8s.io":          {typed(volumeAttributesClass), true},
		"CSINode.storage.k8s.io":                        {typed(csiNode), true},
		"NetworkPolicy.networking.k8s.io":               {typed(networkPolicy), false},
	}
}

// writer writes lines at a level of indentation, two spaces each; tabs end the cells of columns.
type writer struct{ w io.Writer }

func (w *writer) line(level int, format string, args ...any) {
	fmt.Fprintf(w.w, strings.Repeat("  ", level)+format, args...)
}
