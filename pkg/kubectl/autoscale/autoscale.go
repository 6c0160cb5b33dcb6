// Package autoscale is "kubectl autoscale": a HorizontalPodAutoscaler for what can be scaled.
package autoscale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Auto scale a deployment "foo", with the number of pods between 2 and 10, no target CPU utilization specified so a default autoscaling policy will be used
  kubectl autoscale deployment foo --min=2 --max=10

  # Auto scale a replication controller "foo", with the number of pods between 1 and 5, target CPU utilization at 80%
  kubectl autoscale rc foo --max=5 --cpu=80%

  # Auto scale a deployment "bar", with the number of pods between 3 and 6, target average CPU of 500m and memory of 200Mi
  kubectl autoscale deployment bar --min=3 --max=6 --cpu=500m --memory=200Mi

  # Auto scale a deployment "bar", with the number of pods between 2 and 8, target CPU utilization 60% and memory utilization 70%
  kubectl autoscale deployment bar --min=3 --max=6 --cpu=60% --memory=70%`

// Options is one run of "kubectl autoscale".
type Options struct {
	write.Base
	files resource.Files
	args  []string

	name        string
	min, max    int32
	percent     int32
	percentSaid bool
	cpu, memory string
	wish        wish

	discovery discovery.CachedDiscoveryInterface
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-autoscale"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:   "autoscale (-f FILENAME | TYPE NAME | TYPE/NAME) [--min=MINPODS] --max=MAXPODS [--cpu=CPU] [--memory=MEMORY]",
		Short: "Auto-scale a deployment, replica set, stateful set, or replication controller",
		Long: "Creates an autoscaler that automatically chooses and sets the number of pods that run in a Kubernetes cluster. The command will attempt to use the autoscaling/v2 API first, in case of an error, it will fall back to autoscaling/v1 API.\n\n" +
			" Looks up a deployment, replica set, stateful set, or replication controller by name and creates an autoscaler that uses the given resource as a reference. An autoscaler can automatically increase or decrease number of pods deployed within the system as needed.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddRecord(cmd)
	o.AddSaveConfig(set)
	o.files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to autoscale.")
	set.Int32Var(&o.min, "min", -1,
		"The lower limit for the number of pods that can be set by the autoscaler. If it's not specified or negative, the server will apply a default value.")
	set.Int32Var(&o.max, "max", -1,
		"The upper limit for the number of pods that can be set by the autoscaler. Required.")
	_ = cmd.MarkFlagRequired("max") // the flag was added above
	set.Int32Var(&o.percent, "cpu-percent", -1,
		"The target average CPU utilization (represented as a percent of requested CPU) over all the pods. If it's not specified or negative, a default autoscaling policy will be used.")
	_ = set.MarkDeprecated("cpu-percent",
		"Use --cpu with percentage or resource quantity format (e.g., '70%' for utilization or '500m' for milliCPU).")
	set.StringVar(&o.cpu, "cpu", "",
		`Target CPU utilization over all the pods. When specified as a percentage (e.g."70%" for 70% of requested CPU) it will target average utilization. When specified as quantity (e.g."500m" for 500 milliCPU) it will target average value. Value without units is treated as a quantity with miliCPU being the unit (e.g."500" is "500m").`)
	set.StringVar(&o.memory, "memory", "",
		`Target memory utilization over all the pods. When specified  as a percentage (e.g."60%" for 60% of requested memory) it will target average utilization. When specified as quantity (e.g."200Mi" for 200 MiB, "1Gi" for 1 GiB) it will target average value. Value without units is treated as a quantity with mebibytes being the unit (e.g."200" is "200Mi").`)
	set.StringVar(&o.name, "name", "",
		"The name for the newly created object. If not specified, the name of the input resource will be used.")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	o.args, o.percentSaid = args, cmd.Flags().Changed("cpu-percent")
	if err = o.CompleteWith(f); err != nil {
		return err
	}
	o.discovery, err = f.Discovery()
	return err
}

// Validate checks the limits and reads the targets.
func (o *Options) Validate() (err error) {
	if o.max < 1 {
		return fmt.Errorf("--max=MAXPODS is required and must be at least 1, max: %d", o.max)
	}
	if o.max < o.min {
		return fmt.Errorf("--max=MAXPODS must be larger or equal to --min=MINPODS, max: %d, min: %d", o.max, o.min)
	}
	if o.percentSaid && o.cpu != "" {
		return errors.New("--cpu-percent and --cpu are mutually exclusive")
	}
	if o.wish, err = readWish(o.percent, o.cpu, o.memory); err != nil {
		return err
	}
	_, err = o.Printer(o.operation())
	return err
}

// operation is what is said of an autoscaler; nothing is scaled where nothing is sent.
func (o *Options) operation() string {
	if o.DryRun == write.DryRunClient {
		return "created"
	}
	return "autoscaled"
}

// Run makes an autoscaler for each object.
func (o *Options) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Args: o.args, Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit,
	})
	if err == nil && len(infos) == 0 {
		return errors.New("no objects passed to autoscale")
	}
	return resource.Each(infos, err, func(i *resource.Info) error { return o.autoscale(ctx, i) })
}

func (o *Options) autoscale(ctx context.Context, i *resource.Info) error {
	if err := o.scalable(i.Mapping.Resource); err != nil {
		return fmt.Errorf("cannot autoscale a %s: %w", i.Mapping.GroupVersionKind.Kind, err)
	}
	made, err := o.post(ctx, i)
	if err != nil {
		return err
	}
	return o.Show(o.operation(), made)
}

// scalable tells why a resource cannot be scaled.
func (o *Options) scalable(r schema.GroupVersionResource) error {
	list, err := o.discovery.ServerResourcesForGroupVersion(r.GroupVersion().String())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list.APIResources, func(s metav1.APIResource) bool {
		return s.Name == r.Resource+"/scale"
	}) {
		return fmt.Errorf("could not find scale subresource for %s in discovery information", r.String())
	}
	return nil
}

// post makes the autoscaler in v2, and what v1 can say in v1 where that fails.
func (o *Options) post(ctx context.Context, i *resource.Info) (runtime.Object, error) {
	meta := metav1.ObjectMeta{Name: o.name}
	if o.Explicit {
		meta.Namespace = o.Namespace
	}
	if o.name == "" {
		meta.Name = i.Name
	}
	if i.Name == "" {
		return nil, resource.ErrNoName
	}
	var least *int32
	if o.min > 0 {
		least = &o.min
	}
	apiVersion, kind := i.Mapping.GroupVersionKind.ToAPIVersionAndKind()
	wanted := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(),
			Kind: "HorizontalPodAutoscaler"}, ObjectMeta: meta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: kind, Name: i.Name, APIVersion: apiVersion},
			MinReplicas:    least, MaxReplicas: o.max, Metrics: o.wish.metrics(),
		},
	}
	if err := o.Record(wanted); err != nil {
		return nil, err
	}
	made, err := o.Post(ctx, wanted)
	if err == nil {
		return made, nil
	}
	percent, ok := o.wish.onlyPercent()
	if !ok {
		return nil, fmt.Errorf("failed to create autoscaling/v2 HPA and the configuration is incompatible with autoscaling/v1: %w", err)
	}
	return o.Post(ctx, &autoscalingv1.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(),
			Kind: "HorizontalPodAutoscaler"}, ObjectMeta: meta,
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: kind, Name: i.Name, APIVersion: apiVersion},
			MinReplicas:    least, MaxReplicas: o.max, TargetCPUUtilizationPercentage: percent,
		},
	})
}
