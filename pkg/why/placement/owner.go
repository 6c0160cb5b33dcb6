package placement

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// owner is what must be changed to change a pod: the workload that makes it, or the pod itself. It makes the commands.
type owner struct {
	kind, namespace, name string
	// resource is what kubectl calls it, "" if its pods' spec cannot be changed in place.
	resource string
	// prefix is where the pod's spec is in it, and spec what is there.
	prefix string
	spec   *corev1.PodSpec
}

// ownerOf finds the workload whose template makes a pod.
func ownerOf(ctx context.Context, c *why.Case, pod *corev1.Pod) owner {
	ref := metav1.GetControllerOf(pod)
	if ref == nil {
		return owner{kind: "Pod", namespace: pod.Namespace, name: pod.Name, resource: "pod", prefix: "/spec",
			spec: &pod.Spec}
	}
	o := owner{kind: ref.Kind, namespace: pod.Namespace, name: ref.Name, prefix: "/spec/template/spec"}
	switch ref.APIVersion + " " + ref.Kind {
	case "apps/v1 ReplicaSet":
		rs, _ := why.Get[appsv1.ReplicaSet](ctx, c.World, pod.Namespace, ref.Name)
		if rs == nil {
			return o
		}
		o.resource, o.spec = "replicaset", &rs.Spec.Template.Spec
		if up := metav1.GetControllerOf(rs); up != nil {
			o.kind, o.name, o.resource, o.spec = up.Kind, up.Name, "", nil
			if d, _ := why.Get[appsv1.Deployment](ctx, c.World, pod.Namespace, up.Name); d != nil &&
				up.Kind == "Deployment" {
				o.resource, o.spec = "deployment", &d.Spec.Template.Spec
			}
		}
	case "apps/v1 StatefulSet":
		if s, _ := why.Get[appsv1.StatefulSet](ctx, c.World, pod.Namespace, ref.Name); s != nil {
			o.resource, o.spec = "statefulset", &s.Spec.Template.Spec
		}
	case "apps/v1 DaemonSet":
		if d, _ := why.Get[appsv1.DaemonSet](ctx, c.World, pod.Namespace, ref.Name); d != nil {
			o.resource, o.spec = "daemonset", &d.Spec.Template.Spec
		}
	}
	return o
}

// template reports whether the spec can be changed at will: that of a pod cannot.
func (o owner) template() bool { return o.resource != "" && o.kind != "Pod" }

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch is the command for a JSON patch of the owner.
func (o owner) patch(list ...operation) why.CommandLine {
	if len(list) == 0 {
		return ""
	}
	for i := range list {
		list[i].Path = o.prefix + list[i].Path
	}
	body, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return why.Command("kubectl -n %s patch %s %s --type=json -p %s", o.namespace, o.resource, o.name, string(body))
}

// remove, replace and add change fields of a template, whose paths begin at the pod's spec.
func (o owner) remove(paths ...string) why.CommandLine {
	if !o.template() {
		return ""
	}
	var list []operation
	for _, p := range paths {
		list = append(list, operation{Op: "remove", Path: p})
	}
	return o.patch(list...)
}

func (o owner) replace(path string, value any) why.CommandLine {
	if !o.template() {
		return ""
	}
	return o.patch(operation{"replace", path, value})
}

func (o owner) add(path string, value any) why.CommandLine {
	if !o.template() {
		return ""
	}
	return o.patch(operation{"add", path, value})
}

// tolerate adds a toleration, which pods allow, too.
func (o owner) tolerate(t corev1.Toleration) why.CommandLine {
	switch {
	case o.resource == "":
		return ""
	case len(o.spec.Tolerations) == 0:
		return o.patch(operation{"add", "/tolerations", []corev1.Toleration{t}})
	}
	return o.patch(operation{"add", "/tolerations/-", t})
}

// dropPorts removes the host ports.
func (o owner) dropPorts() why.CommandLine {
	if !o.template() {
		return ""
	}
	var list []operation
	for i := range o.spec.Containers {
		for j, p := range o.spec.Containers[i].Ports {
			if p.HostPort > 0 {
				list = append(list, operation{Op: "remove", Path: fmt.Sprintf("/containers/%d/ports/%d/hostPort", i,
					j)})
			}
		}
	}
	return o.patch(list...)
}

// request changes what a container asks for. Pods are resized in place.
func (o owner) request(container string, name corev1.ResourceName, value string) why.CommandLine {
	switch {
	case o.resource == "":
		return ""
	case !slices.ContainsFunc(o.spec.Containers, func(c corev1.Container) bool { return c.Name == container }):
		return "" // an init container, which no such command changes, or one that others add to each pod
	case o.template():
		return why.Command("kubectl -n %s set resources %s %s -c %s --requests=%s", why.Word(o.namespace), o.resource,
			why.Word(o.name), why.Word(container), why.Word(string(name)+"="+value))
	case name != corev1.ResourceCPU && name != corev1.ResourceMemory:
		return ""
	}
	body := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{%q:%q}}}]}}`, container, name,
		value)
	return why.Command("kubectl -n %s patch pod %s --subresource resize -p %s", why.Word(o.namespace), why.Word(o.name),
		why.Word(body))
}

// pointer escapes a key for a JSON pointer.
func pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
