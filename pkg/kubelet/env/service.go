package env

import (
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serviceVars returns the variables that describe Services to the pod: all with a cluster address of its own namespace,
// unless it declines (enableServiceLinks: false), and always default/kubernetes, through which it finds the API server.
func serviceVars(in Input) map[string]string {
	links := in.Pod.Spec.EnableServiceLinks == nil || *in.Pod.Spec.EnableServiceLinks
	byName := map[string]*corev1.Service{}
	for _, s := range in.Services {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		switch {
		case links && s.Namespace == in.Pod.Namespace:
			byName[s.Name] = s
		case s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" && byName[s.Name] == nil:
			byName[s.Name] = s
		}
	}
	vars := map[string]string{}
	for _, s := range byName {
		describe(s, vars)
	}
	return vars
}

// describe adds a Service's variables: host and ports, and the older form of Docker's links, one set for each port.
func describe(s *corev1.Service, vars map[string]string) {
	if len(s.Spec.Ports) == 0 {
		return
	}
	name, host := upper(s.Name), s.Spec.ClusterIP
	vars[name+"_SERVICE_HOST"] = host
	vars[name+"_SERVICE_PORT"] = strconv.Itoa(int(s.Spec.Ports[0].Port))
	for i, p := range s.Spec.Ports {
		port, protocol := strconv.Itoa(int(p.Port)), "TCP"
		if p.Protocol != "" {
			protocol = string(p.Protocol)
		}
		if p.Name != "" {
			vars[name+"_SERVICE_PORT_"+upper(p.Name)] = port
		}
		url := strings.ToLower(protocol) + "://" + net.JoinHostPort(host, port)
		if i == 0 {
			vars[name+"_PORT"] = url
		}
		prefix := name + "_PORT_" + port + "_" + strings.ToUpper(protocol)
		vars[prefix] = url
		vars[prefix+"_PROTO"] = strings.ToLower(protocol)
		vars[prefix+"_PORT"] = port
		vars[prefix+"_ADDR"] = host
	}
}

func upper(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
