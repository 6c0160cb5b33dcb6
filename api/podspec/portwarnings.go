package podspec

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxPortWarnings bounds what is said of the ports of one pod, whose number grows with the square of theirs. The
// headers of an answer hold fewer.
const maxPortWarnings = 100

// portWarner looks for ports of one pod that are defined twice, or in ways that do not go together. It sees the
// containers in their order, those of initialization first.
type portWarner struct {
	seen  map[portKey][]placedPort
	given int
}

// portKey is what ports have in common that may be in each other's way.
type portKey struct {
	number   int32
	protocol corev1.Protocol
}

// placedPort is a port with its place in the pod.
type placedPort struct {
	corev1.ContainerPort
	path *field.Path
}

// warn tells what is odd about the next container's ports, by themselves and beside those before.
func (w *portWarner) warn(c *corev1.Container, path *field.Path) []string {
	if w.seen == nil {
		w.seen = map[portKey][]placedPort{}
	}
	var out []string
	for i, p := range c.Ports {
		at := path.Child("ports").Index(i)
		if p.HostIP != "" && p.HostPort == 0 {
			out = append(out, fmt.Sprintf("%s: hostIP set without hostPort: %+v", at, p))
		}
		key := portKey{p.ContainerPort, p.Protocol}
		for _, other := range w.seen[key] {
			if w.given >= maxPortWarnings {
				return out
			}
			if relation := portRelation(p, other.ContainerPort); relation != "" {
				out = append(out, fmt.Sprintf("%s: %s port definition with %s", at, relation, other.path))
				w.given++
			}
		}
		w.seen[key] = append(w.seen[key], placedPort{p, at})
	}
	return out
}

// portNames are the first ports of the containers seen so far by their names.
type portNames map[string]*field.Path

// warn tells which of the next container's ports nobody finds by their names, as a container before has such a port,
// too.
func (n portNames) warn(c *corev1.Container, path *field.Path) []string {
	var out []string
	own := map[string]*field.Path{}
	for i, p := range c.Ports {
		at := path.Child("ports").Index(i)
		if first, ok := n[p.Name]; ok {
			out = append(out, fmt.Sprintf(
				"%s: duplicate port name %q with %s, services and probes that select ports by name will use %s", at,
				p.Name, first, first))
		} else if p.Name != "" {
			own[p.Name] = at
		}
	}
	maps.Copy(n, own)
	return out
}

// portRelation says how two ports of one number and protocol are in each other's way; "" if they are not.
func portRelation(a, b corev1.ContainerPort) string {
	switch {
	case a.HostPort == b.HostPort && a.HostIP == b.HostIP:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "" || b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}
