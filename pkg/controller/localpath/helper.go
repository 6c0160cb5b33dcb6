package localpath

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// helperNamespace is where the helpers run; the account of this controller may make pods nowhere else.
const helperNamespace = "kube-system"

// The annotations of a helper, and the label by which people find them.
const (
	claimAnnotation  = "bonsai.io/claim"
	volumeAnnotation = "bonsai.io/volume"
	helperLabel      = "bonsai.io/local-path"
)

// verb is what a helper does with the directory of a volume.
type verb string

const (
	create verb = "create"
	remove verb = "remove"
)

// helper is a pod that was started for a volume.
type helper struct {
	pod    *corev1.Pod
	volume string
	claim  controller.Key
	verb   verb
	dir    string
}

// helperOf reads what a pod was started for; ok is false for all other pods.
func helperOf(p *corev1.Pod) (h helper, ok bool) {
	v := p.Labels[helperLabel]
	if p.Namespace != helperNamespace || v == "" || len(p.Spec.Containers) != 1 || len(p.Spec.Containers[0].Env) != 1 {
		return helper{}, false
	}
	ns, name, _ := strings.Cut(p.Annotations[claimAnnotation], "/")
	return helper{pod: p, volume: p.Annotations[volumeAnnotation], claim: controller.Key{Namespace: ns, Name: name},
		verb: verb(v), dir: p.Spec.Containers[0].Env[0].Value}, true
}

func helperName(do verb, volume string) string { return "local-path-" + string(do) + "-" + volume }

// finished reports whether a helper has run to its end and is not on its way out.
func (h *helper) finished() bool {
	return controller.PodTerminal(h.pod) && h.pod.DeletionTimestamp == nil
}

// job is what a helper is to be started for. dir is the name of a directory in the root; volume is the one that was
// judged, nil if there is none.
type job struct {
	verb   verb
	node   string
	dir    string
	volume *corev1.PersistentVolume
	// critical is set for a job that the node must let run although it lacks disk.
	critical bool
}

// newHelper returns the pod that does a job. It sees the root of the volumes and nothing else of its node, has no
// token, and its only capabilities are to pass over the modes and the owners of files. It bypasses the scheduler and
// all taints: the directory is on this node or nowhere. A new directory is writable by every user, because containers
// need not run as root; pods without the volume do not see it.
//
// The pod has no priority unless the job is critical. On a full node a critical pod takes the place of another one, and
// whoever may create claims would decide on which node that happens.
func newHelper(k key, j job, root, image string) *corev1.Pod {
	script := map[verb]string{create: `mkdir -p -m 0777 -- "/volumes/$DIR"`,
		remove: `rm -rf -- "/volumes/$DIR"`}[j.verb]
	kind := corev1.HostPathDirectoryOrCreate
	priority := ""
	if j.critical {
		priority = "system-node-critical"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: helperNamespace, Name: helperName(j.verb, k.volume),
			Labels:      map[string]string{helperLabel: string(j.verb)},
			Annotations: map[string]string{claimAnnotation: k.claim.String(), volumeAnnotation: k.volume},
		},
		Spec: corev1.PodSpec{
			NodeName: j.node, RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: priority,
			AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "helper", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
				Command:      []string{"sh", "-c", script},
				Env:          []corev1.EnvVar{{Name: "DIR", Value: j.dir}},
				VolumeMounts: []corev1.VolumeMount{{Name: "volumes", MountPath: "/volumes"}},
				SecurityContext: &corev1.SecurityContext{
					RunAsUser: new(int64(0)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"},
						Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER"}},
				},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			}},
			Volumes: []corev1.Volume{
				{Name: "volumes", VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: root, Type: &kind}}}},
		},
	}
}

// said is what a helper that failed had to say.
func (h *helper) said() string {
	for _, s := range h.pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.Message != "" {
			return strings.TrimSpace(t.Message)
		}
	}
	return strings.TrimSpace(h.pod.Status.Reason + " " + h.pod.Status.Message)
}
