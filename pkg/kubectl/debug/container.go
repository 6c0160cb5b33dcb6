package debug

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// fill writes the user's wishes into c. A copied container keeps what the user does not set, except standard input and
// terminal, which are those of this session. Variables are sorted, so that the same command makes the same object.
func (w *wish) fill(c *corev1.Container) {
	if w.image != "" {
		c.Image = w.image
	}
	if w.pull != "" {
		c.ImagePullPolicy = corev1.PullPolicy(w.pull)
	}
	if len(w.env) > 0 {
		c.Env = nil
		for _, name := range slices.Sorted(maps.Keys(w.env)) {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: w.env[name]})
		}
	}
	c.Stdin, c.TTY = w.stdin, w.tty
	switch {
	case len(w.args) == 0:
	case w.argsOnly:
		c.Args = w.args
	default:
		c.Command, c.Args = w.args, nil
	}
}

// freeName returns a random name that no container of spec has, ephemeral and init containers included: the server
// requires names to differ among all of them.
func freeName(spec *corev1.PodSpec) string {
	taken := map[string]bool{}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		taken[c.Name] = true
	}
	for _, c := range spec.EphemeralContainers {
		taken[c.Name] = true
	}
	for {
		if name := "debugger-" + rand.String(5); !taken[name] {
			return name
		}
	}
}

// ephemeralPod returns a copy of pod with one more ephemeral container, called name, and that container.
func ephemeralPod(pod *corev1.Pod, name, profile string, w *wish) (*corev1.Pod, *corev1.Container, error) {
	out := pod.DeepCopy()
	c := &corev1.Container{Name: name}
	w.fill(c)
	grant(profile, ephemeral, &out.Spec, c)
	if err := customize(c, w.partial); err != nil {
		return nil, nil, err
	}
	out.Spec.EphemeralContainers = append(out.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon(*c), TargetContainerName: w.target,
	})
	return out, c, nil
}

// copyPod returns a copy of pod called to, with the wished images, and its container for debugging: the one called
// name, or a new one. If the user wishes only for other images, the container is nil, and everything else stays as in
// pod. The copy has no status, no owner and no ephemeral containers.
func copyPod(pod *corev1.Pod, to, name, profile string, w *wish, k keep) (*corev1.Pod, *corev1.Container, error) {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: to, Namespace: pod.Namespace, Annotations: maps.Clone(pod.Annotations),
			Labels: maps.Clone(pod.Labels)},
		Spec: *pod.Spec.DeepCopy(),
	}
	out.Spec.EphemeralContainers = nil // pods are made without
	if w.share != nil {
		out.Spec.ShareProcessNamespace = w.share
	}
	if !w.sameNode {
		out.Spec.NodeName = ""
	}
	for i := range out.Spec.Containers {
		c := &out.Spec.Containers[i]
		if image, ok := w.images[c.Name]; ok {
			c.Image = image
		} else if image, ok := w.images["*"]; ok {
			c.Image = image
		}
	}
	c := find(&out.Spec, name)
	switch {
	case c != nil:
	case w.image == "" && len(w.images) > 0:
		return out, nil, nil
	case w.image == "":
		return nil, nil, errors.New("you must specify image when creating new container")
	default:
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: name})
		c = &out.Spec.Containers[len(out.Spec.Containers)-1]
	}
	w.fill(c)
	k.drop(out)
	if c = find(&out.Spec, name); c == nil {
		return out, nil, nil // an init container, and they go
	}
	grant(profile, copied, &out.Spec, c)
	return out, c, customize(c, w.partial)
}

// find returns the container or init container called name, in place so that it can be changed; nil if there is none.
func find(spec *corev1.PodSpec, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		if i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// managedBy labels the pods that are made for nodes.
const managedBy = "app.kubernetes.io/managed-by"

// nodePod returns a pod on node, assigned directly, without the scheduler. It tolerates all taints, because a node that
// needs debugging often has some, and its container is never restarted.
func nodePod(node, namespace, profile string, w *wish) (*corev1.Pod, *corev1.Container, error) {
	name := w.container
	if name == "" {
		name = "debugger"
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "node-debugger-" + node + "-" + rand.String(5), Namespace: namespace,
			Labels: map[string]string{managedBy: "kubectl-debug"},
		},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: name}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	c := &pod.Spec.Containers[0]
	w.fill(c)
	grant(profile, onNode, &pod.Spec, c)
	return pod, c, customize(c, w.partial)
}
