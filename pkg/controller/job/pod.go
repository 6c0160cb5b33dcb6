package job

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/batch"
	"bonsai/pkg/controller/podtemplate"
)

func kind() schema.GroupVersionKind { return batchv1.SchemeGroupVersion.WithKind("Job") }

// indexOf is the completion index that a pod is for, if it has one below n.
func indexOf(p *corev1.Pod, n int) (int, bool) {
	i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	return i, err == nil && i >= 0 && i < n
}

const (
	// maxNamePrefix leaves room for the suffix in a name that is a host's at the same time.
	maxNamePrefix = 58
	suffixLength  = 5
	// alphabet has no vowels, so that names are no words.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
)

// namer gives names to a job's new pods. A name follows from the job, when it was resumed, the index, and which names
// are taken by pods that are there: a pod that was created although the answer was lost is found to exist when it is
// created again, instead of becoming two.
//
// salt skips names that another owner's pod has.
type namer struct {
	job     *batchv1.Job
	resumed int64
	salt    int
	taken   map[string]bool
}

func (s *state) namer() *namer {
	n := &namer{job: s.job, salt: s.salt, taken: make(map[string]bool, len(s.pods))}
	if c := batch.Condition(&s.job.Status, batchv1.JobSuspended); c != nil {
		n.resumed = c.LastTransitionTime.Unix()
	}
	for _, p := range s.pods {
		n.taken[p.Name] = true
	}
	return n
}

// name returns the next free name with the prefix. It ends: every k gives another hash, and taken is finite.
func (n *namer) name(prefix string) string {
	for k := n.salt; ; k++ {
		if name := prefix + n.suffix(prefix, k); !n.taken[name] {
			n.taken[name] = true
			return name
		}
	}
}

func (n *namer) suffix(prefix string, k int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d/%s/%d", n.job.UID, n.resumed, prefix, k)
	sum := h.Sum64()
	out := make([]byte, suffixLength)
	for i := range out {
		out[i] = alphabet[sum%uint64(len(alphabet))]
		sum /= uint64(len(alphabet))
	}
	return string(out)
}

// podFor makes a pod of the job; index is that of an indexed job.
//
// It adds the finalizer to the pod before the pod exists: a pod that ended before the finalizer was there would never
// be counted.
func (s *state) podFor(n *namer, index int) *corev1.Pod {
	p := podtemplate.PodOf(s.job, kind(), &s.job.Spec.Template)
	if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
		p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	}
	tail := "-"
	if s.indexed() {
		tail = fmt.Sprintf("-%d-", index)
		giveIndex(p, s.job.Name, strconv.Itoa(index))
	}
	p.GenerateName = s.job.Name[:min(len(s.job.Name), maxNamePrefix-len(tail))] + tail
	p.Name = n.name(p.GenerateName)
	return p
}

// giveIndex tells a pod its index: in its metadata, its environment and its host name.
func giveIndex(p *corev1.Pod, job, index string) {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Annotations[batchv1.JobCompletionIndexAnnotation], p.Labels[batchv1.JobCompletionIndexAnnotation] = index, index
	for _, cs := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range cs {
			giveVariable(&cs[i])
		}
	}
	// This replaces the template's host name: the pods of an indexed job must have different ones.
	p.Spec.Hostname = job + "-" + index
}

func giveVariable(c *corev1.Container) {
	const name = "JOB_COMPLETION_INDEX"
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation +
			"']"},
	}})
}
