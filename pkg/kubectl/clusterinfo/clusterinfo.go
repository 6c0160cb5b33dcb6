// Package clusterinfo says where the cluster's services are.
package clusterinfo

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// NewCommand returns "kubectl cluster-info".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster-info",
		Example: "# The addresses of the control plane and of the services of the cluster\nkubectl cluster-info",
		Short:   "Display cluster information",
		Long:    "Display addresses of the control plane and services with label kubernetes.io/cluster-service=true.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.RESTConfig()
			if err != nil {
				return err
			}
			c, err := f.Resources()
			if err != nil {
				return err
			}
			m, err := c.Mapping("services")
			if err != nil {
				return err
			}
			list, err := c.List(cmd.Context(), m, metav1.NamespaceSystem,
				metav1.ListOptions{LabelSelector: "kubernetes.io/cluster-service=true"})
			if err != nil {
				return err
			}
			fmt.Fprintf(streams.Out, "Kubernetes control plane is running at %s\n", cfg.Host)
			for i := range list.Items {
				s := &corev1.Service{}
				if err := resource.FromUnstructured(&list.Items[i], s); err != nil {
					return err
				}
				name := s.Labels["kubernetes.io/name"]
				if name == "" {
					name = s.Name
				}
				fmt.Fprintf(streams.Out, "%s is running at %s\n", name, link(cfg.Host, s))
			}
			fmt.Fprintf(streams.Out,
				"\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n")
			return nil
		},
	}
	cmd.AddCommand(newDump(f, streams))
	return cmd
}

// link is where the service is reached: its load balancer, or through the server.
func link(host string, s *corev1.Service) string {
	if in := s.Status.LoadBalancer.Ingress; len(in) > 0 {
		ip := in[0].IP
		if ip == "" {
			ip = in[0].Hostname
		}
		var out string
		for _, p := range s.Spec.Ports {
			out += fmt.Sprintf("http://%s:%d ", ip, p.Port)
		}
		return out
	}
	name := s.Name
	if len(s.Spec.Ports) > 0 {
		p := s.Spec.Ports[0]
		scheme := ""
		if p.Name == "https" || p.Port == 443 {
			scheme = "https:"
		}
		name = scheme + s.Name + ":" + p.Name
	}
	return fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s/proxy", host, s.Namespace, name)
}
