// Package portforward connects local ports with ports of a pod.
package portforward

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	streaming "k8s.io/streaming/pkg/httpstream"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of port-forward.
type Options struct {
	cli.IOStreams
	addresses []string
	timeout   time.Duration
	namespace string
	target    string
	ports     []string
	client    *resource.Client
	config    *rest.Config
}

// NewCommand returns "kubectl port-forward".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "port-forward TYPE/NAME [options] [LOCAL_PORT:]REMOTE_PORT [...[LOCAL_PORT_N:]REMOTE_PORT_N]",
		Short: "Forward one or more local ports to a pod",
		Long:  "Forward one or more local ports to a pod.\n\n Use resource type/name such as deployment/mydeployment to select a pod. Resource type defaults to 'pod' if omitted.",
		Example: `
# Listen on ports 5000 and 6000 locally, forwarding data to/from ports 5000 and 6000 in the pod
kubectl port-forward pod/mypod 5000 6000

# Listen on port 8443 locally, forwarding to the targetPort of the service's port named "https" in a pod selected by the service
kubectl port-forward service/myservice 8443:https

# Listen on a random port locally, forwarding to 5000 in the pod
kubectl port-forward pod/mypod :5000`,
		RunE: cli.RunE(f, o),
	}
	cmd.Flags().StringSliceVar(&o.addresses, "address", []string{"localhost"},
		"Addresses to listen on (comma separated). Only accepts IP addresses or localhost as a value. When localhost is supplied, kubectl will try to bind on both 127.0.0.1 and ::1 and will fail if neither of these addresses are available to bind.")
	cmd.Flags().DurationVar(&o.timeout, "pod-running-timeout", time.Minute,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if len(args) < 2 {
		return cli.UsageErrorf(cmd, "TYPE/NAME and list of ports are required for port-forward")
	}
	o.target, o.ports = args[0], args[1:]
	if o.namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	if o.client, err = f.Resources(); err != nil {
		return err
	}
	o.config, err = f.RESTConfig()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	if len(o.addresses) == 0 {
		return errors.New("at least one address is needed")
	}
	return nil
}

// Run implements cli.Options. It forwards until ctx ends or the connection is lost.
func (o *Options) Run(ctx context.Context) error {
	found, err := pods.Find(ctx, o.client, o.namespace, o.target, o.timeout)
	if err != nil {
		return err
	}
	pod := &found[0]
	ports, err := o.translate(ctx, pod)
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("unable to forward port because pod is not running. Current status=%v", pod.Status.Phase)
	}
	dialer, err := o.dialer(pod)
	if err != nil {
		return err
	}
	fw, err := portforward.NewOnAddresses(dialer, o.addresses, ports, ctx.Done(), make(chan struct{}), o.Out, o.ErrOut)
	if err != nil {
		return err
	}
	if err := fw.ForwardPorts(); err != nil || cli.SignalOf(ctx) == syscall.SIGINT {
		return err // an interrupt is how forwarding is ended
	}
	return ctx.Err()
}

// dialer returns how to connect to the pod: by WebSocket, and by SPDY if the server, or a proxy in between, does not
// upgrade. $KUBECTL_PORT_FORWARD_WEBSOCKETS turns WebSockets off.
func (o *Options) dialer(pod *corev1.Pod) (httpstream.Dialer, error) {
	path, err := resource.ObjectPath(pods.Mapping(), pod.Namespace, pod.Name, "portforward")
	if err != nil {
		return nil, err
	}
	u := o.client.REST.Post().AbsPath(path...).URL()
	transport, upgrader, err := spdy.RoundTripperFor(o.config)
	if err != nil {
		return nil, err
	}
	plain := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, u)
	if !pods.WebSockets("KUBECTL_PORT_FORWARD_WEBSOCKETS") {
		return plain, nil
	}
	ws, err := portforward.NewSPDYOverWebsocketDialer(u, o.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialer(ws, plain, func(err error) bool {
		return streaming.IsUpgradeFailure(err) || streaming.IsHTTPSProxyError(err)
	}), nil
}

// translate returns the [LOCAL:]REMOTE arguments with port numbers of the pod for REMOTE, which names a port of the
// service, if the target is one, or else a port of a container. All ports are checked before anything connects, so that
// a failed connection hides no mistake in them.
func (o *Options) translate(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	var service *corev1.Service
	if kind, _, ok := strings.Cut(o.target, "/"); ok {
		infos, err := o.client.Resolve(ctx, resource.Request{Args: []string{o.target}, Namespace: o.namespace})
		if err != nil {
			return nil, err
		}
		if infos[0].Mapping.GroupVersionKind.Kind == "Service" && infos[0].Mapping.GroupVersionKind.Group == "" {
			service = &corev1.Service{}
			if err := resource.FromUnstructured(infos[0].Object, service); err != nil {
				return nil, fmt.Errorf("decode %s: %w", kind, err)
			}
		}
	}
	var out []string
	for _, p := range o.ports {
		one, err := translatePort(p, service, pod)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// translatePort returns one argument with a port number of the pod for REMOTE. Without LOCAL, the local port is the
// number that the user wrote, or the number of the named port: for a service that of the service, not that of the pod.
// ":REMOTE" asks for any free local port.
func translatePort(arg string, service *corev1.Service, pod *corev1.Pod) (string, error) {
	local, remote, ok := strings.Cut(arg, ":")
	if !ok {
		remote = local
	}
	var number int32
	var err error
	if service != nil {
		number, err = servicePort(remote, service, pod)
	} else {
		number, err = podPort(remote, pod)
	}
	if err != nil {
		return "", err
	}
	if onlyUDP(remote, service, pod) {
		return "", fmt.Errorf("UDP protocol is not supported for %s", remote)
	}
	if !ok {
		local = remote
		if _, err := strconv.Atoi(local); err != nil {
			local = strconv.Itoa(int(number))
			if service != nil {
				for _, p := range service.Spec.Ports {
					if p.Name == remote {
						local = strconv.Itoa(int(p.Port))
					}
				}
			}
		}
	}
	if n := strconv.Itoa(int(number)); local != n || ok {
		return local + ":" + n, nil
	}
	return local, nil
}

// servicePort returns the pod's port behind a port of the service, by name or by number. A headless service has no
// proxy that translates ports: its clients connect to the pod at the service's port number.
func servicePort(remote string, service *corev1.Service, pod *corev1.Pod) (int32, error) {
	for _, p := range service.Spec.Ports {
		if p.Name != remote && strconv.Itoa(int(p.Port)) != remote {
			continue
		}
		switch {
		case service.Spec.ClusterIP == corev1.ClusterIPNone:
			return p.Port, nil
		case p.TargetPort.StrVal != "":
			return podPort(p.TargetPort.StrVal, pod)
		case p.TargetPort.IntVal != 0:
			return p.TargetPort.IntVal, nil
		}
		return p.Port, nil
	}
	if _, err := strconv.Atoi(remote); err != nil {
		return 0, fmt.Errorf("Service '%s' does not have a named port '%s'", service.Name, remote)
	}
	return 0, fmt.Errorf("Service %s does not have a service port %s", service.Name, remote)
}

// podPort returns a port of the pod by number, which need not be declared, or by the name that a container gives it.
func podPort(remote string, pod *corev1.Pod) (int32, error) {
	if n, err := strconv.ParseInt(remote, 10, 32); err == nil {
		return int32(n), nil
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == remote {
				return p.ContainerPort, nil
			}
		}
	}
	return 0, fmt.Errorf("Pod '%s' does not have a named port '%s'", pod.Name, remote)
}

// onlyUDP reports whether the service, or without one the pod, has the port for UDP and not for TCP. Only TCP
// connections can be forwarded.
func onlyUDP(remote string, service *corev1.Service, pod *corev1.Pod) bool {
	var all []corev1.ContainerPort
	if service != nil {
		for _, p := range service.Spec.Ports {
			all = append(all, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: p.Protocol})
		}
	} else {
		for _, c := range pod.Spec.Containers {
			all = append(all, c.Ports...)
		}
	}
	at := slices.IndexFunc(all, func(p corev1.ContainerPort) bool {
		return p.Name == remote || strconv.Itoa(int(p.ContainerPort)) == remote
	})
	has := func(protocol corev1.Protocol) bool {
		return slices.ContainsFunc(all, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == all[at].ContainerPort && p.Protocol == protocol
		})
	}
	return at >= 0 && has(corev1.ProtocolUDP) && !has(corev1.ProtocolTCP)
}
