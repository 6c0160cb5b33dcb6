package create

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/kubectl/cli"
)

func newService(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	return newParent(f, streams, "service", []string{"svc"}, "Create a service using a specified subcommand",
		"Create a service using a specified subcommand.",
		service("clusterip", corev1.ServiceTypeClusterIP), service("externalname", corev1.ServiceTypeExternalName),
		service("loadbalancer", corev1.ServiceTypeLoadBalancer), service("nodeport", corev1.ServiceTypeNodePort))
}

// newParent makes a command that only has subcommands.
func newParent(f *cli.Factory, streams cli.IOStreams, use string, aliases []string, short, long string,
	below ...kind) *cobra.Command {
	cmd := &cobra.Command{Use: use, Aliases: aliases, Short: short, Long: long, RunE: cli.Group}
	for _, k := range below {
		cmd.AddCommand(newGenerator(f, streams, k))
	}
	return cmd
}

// service returns the generator of one type below "create service". The Service selects pods with the label app=NAME.
func service(name string, t corev1.ServiceType) kind {
	var tcp []string
	var clusterIP, external string
	var nodePort int
	article, ports := "a", "[--tcp=port:targetPort]"
	switch t {
	case corev1.ServiceTypeClusterIP:
		ports = "[--tcp=<port>:<targetPort>]"
	case corev1.ServiceTypeExternalName:
		article, ports = "an", "--external-name external.name"
	}
	k := kind{
		use:     fmt.Sprintf("%s NAME %s [--dry-run=server|client|none]", name, ports),
		failed:  fmt.Sprintf("failed to create %s service: ", t),
		long:    fmt.Sprintf("Create %s %s service with the specified name.", article, t),
		short:   fmt.Sprintf("Create %s %s service", article, t),
		example: fmt.Sprintf("  # Create a service of type %s\n  kubectl create service %s web --tcp=80:8080", t, name),
		flags: func(set *pflag.FlagSet) {
			set.StringSliceVar(&tcp, "tcp", nil, "Port pairs can be specified as '<port>:<targetPort>'.")
			switch t {
			case corev1.ServiceTypeClusterIP:
				set.StringVar(&clusterIP, "clusterip", "",
					"Assign your own ClusterIP or set to 'None' for a 'headless' service (no loadbalancing).")
			case corev1.ServiceTypeNodePort:
				set.IntVar(&nodePort, "node-port", 0, "Port used to expose the service on each node in a cluster.")
			case corev1.ServiceTypeExternalName:
				set.StringVar(&external, "external-name", "", "External name of service")
			}
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if err := checkService(t, tcp, clusterIP, external); err != nil {
				return nil, err
			}
			ports, err := servicePorts(tcp, int32(nodePort))
			if err != nil {
				return nil, err
			}
			labels := map[string]string{"app": g.name}
			s := &corev1.Service{TypeMeta: core("Service"), ObjectMeta: g.meta(), Spec: corev1.ServiceSpec{
				Type: t, Selector: labels, Ports: ports, ExternalName: external, ClusterIP: clusterIP,
			}}
			s.Labels = labels
			return s, nil
		},
	}
	if t == corev1.ServiceTypeExternalName {
		k.example = "  # Create a service that is another name for a host\n  kubectl create service externalname web --external-name=web.example.com"
		k.required = []string{"external-name"}
	}
	return k
}

// checkService checks the flags of a type against each other. A headless Service has no ports here, as upstream.
func checkService(t corev1.ServiceType, tcp []string, clusterIP, external string) error {
	if t == corev1.ServiceTypeExternalName {
		if len(validation.IsDNS1123Subdomain(external)) > 0 {
			return fmt.Errorf("invalid service external name %s", external)
		}
		return nil
	}
	if clusterIP == corev1.ClusterIPNone && len(tcp) > 0 {
		return errors.New("can not map ports with clusterip=None")
	}
	if clusterIP != corev1.ClusterIPNone && len(tcp) == 0 {
		return errors.New("at least one tcp port specifier must be provided")
	}
	return nil
}

// servicePorts reads "80", "80:8080" and "80:http"; every port gets nodePort.
func servicePorts(pairs []string, nodePort int32) ([]corev1.ServicePort, error) {
	var out []corev1.ServicePort
	for _, pair := range pairs {
		parts := strings.SplitN(pair, ":", 3)
		port, err := strconv.ParseUint(parts[0], 10, 16)
		if err != nil {
			return nil, err
		}
		target := intstr.FromInt32(int32(port))
		if len(parts) > 1 {
			if target = intstr.Parse(parts[1]); target.Type == intstr.String {
				if errs := validation.IsValidPortName(parts[1]); len(errs) > 0 {
					return nil, errors.New(strings.Join(errs, ","))
				}
			} else if errs := validation.IsValidPortNum(int(target.IntVal)); len(errs) > 0 {
				return nil, errors.New(strings.Join(errs, ","))
			}
		}
		out = append(out, corev1.ServicePort{
			Name: strings.ReplaceAll(pair, ":", "-"), Port: int32(port), TargetPort: target,
			Protocol: corev1.ProtocolTCP, NodePort: nodePort,
		})
	}
	return out, nil
}
