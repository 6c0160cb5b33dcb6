// Package expose is "kubectl expose": a Service for what runs, its selector, ports and labels taken from there.
package expose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Create a service for a replicated nginx, which serves on port 80 and connects to the containers on port 8000
  kubectl expose rc nginx --port=80 --target-port=8000

  # Create a service for an nginx deployment, which serves on port 80 and connects to the containers on port 8000
  kubectl expose deployment nginx --port=80 --target-port=8000`

// Options is one run of "kubectl expose".
type Options struct {
	write.Base
	files     resource.Files
	args      []string
	overrides write.Overrides
	spec      spec
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-expose"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "expose (-f FILENAME | TYPE NAME) [--port=port] [--protocol=TCP|UDP|SCTP] [--target-port=number-or-name] [--name=name] [--external-ip=external-ip-of-service] [--type=type]",
		Short:   "Take a replication controller, service, deployment or pod and expose it as a new Kubernetes service",
		Long:    "Expose a resource as a new Kubernetes service.\n\n Looks up a deployment, service, replica set, replication controller or pod by name and uses the selector for that resource as the selector for a new service on the specified port.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddSaveConfig(set)
	o.AddRecord(cmd)
	o.overrides.AddFlags(set)
	o.files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to expose a service")
	s := &o.spec
	set.StringVar(&s.protocol, "protocol", "", "The network protocol for the service to be created. Default is 'TCP'.")
	set.StringVar(&s.port, "port", "",
		"The port that the service should serve on. Copied from the resource being exposed, if unspecified")
	set.StringVar(&s.kind, "type", "",
		"Type for this service: ClusterIP, NodePort, LoadBalancer, or ExternalName. Default is 'ClusterIP'.")
	set.StringVar(&s.loadBalancerIP, "load-balancer-ip", "",
		"IP to assign to the LoadBalancer. If empty, an ephemeral IP will be created and used (cloud-provider specific).")
	set.StringVar(&s.selector, "selector", "",
		"A label selector to use for this service. Only equality-based selector requirements are supported. If empty (the default) infer the selector from the replication controller or replica set.)")
	set.StringVarP(&s.labels, "labels", "l", "", "Labels to apply to the service created by this call.")
	set.StringVar(&s.targetPort, "target-port", "",
		"Name or number for the port on the container that the service should direct traffic to. Optional.")
	set.StringVar(&s.externalIP, "external-ip", "",
		"Additional external IP address (not managed by Kubernetes) to accept for the service. If this IP is routed to a node, the service can be accessed by this IP in addition to its generated service IP.")
	set.StringVar(&s.name, "name", "", "The name for the newly created object.")
	set.StringVar(&s.affinity, "session-affinity", "",
		"If non-empty, set the session affinity for the service to this; legal values: 'None', 'ClientIP'")
	set.StringVar(&s.clusterIP, "cluster-ip", "",
		"ClusterIP to be assigned to the service. Leave empty to auto-allocate, or set to 'None' to create a headless service.")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate checks -o.
func (o *Options) Validate() error {
	_, err := o.Printer("exposed")
	return err
}

// Run makes a service for each object.
func (o *Options) Run(ctx context.Context) error {
	infos, err := o.Client.Resolve(ctx, resource.Request{
		Args: o.args, Files: o.files, Namespace: o.Namespace, ExplicitNamespace: o.Explicit,
	})
	return resource.Each(infos, err, func(i *resource.Info) error { return o.expose(ctx, i) })
}

func (o *Options) expose(ctx context.Context, i *resource.Info) error {
	f, err := inspect(i.Object)
	if err != nil {
		return err
	}
	s := o.spec
	if s.name == "" {
		if i.Name == "" {
			return errors.New("name must be specified")
		}
		if s.name = i.Name; len(s.name) > validation.DNS1035LabelMaxLength {
			s.name = s.name[:validation.DNS1035LabelMaxLength]
		}
	}
	service, err := s.service(f)
	if err != nil {
		return err
	}
	if o.overrides.Patch != "" {
		out := &corev1.Service{}
		if err := o.overrides.Apply(service, out); err != nil {
			return err
		}
		service = out
	}
	if o.Explicit {
		service.Namespace = o.Namespace
	}
	if err := o.Record(service); err != nil {
		return err
	}
	made, err := o.Post(ctx, service)
	if err != nil {
		return err
	}
	return o.Show("exposed", made)
}

// parseLabels reads "a=b,c=d".
func parseLabels(text string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" || strings.Contains(v, "=") {
			return nil, fmt.Errorf("unexpected label spec: %s", pair)
		}
		out[k] = v
	}
	return out, nil
}
