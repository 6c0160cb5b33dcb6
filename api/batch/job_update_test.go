package batch

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTemplateUpdate: what a kube-apiserver v1.36.3 lets one change of the template of a job, and of which jobs.
func TestTemplateUpdate(t *testing.T) {
	t.Parallel()
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	node := &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: corev1.NodeSelectorOpExists}}},
			}}}
	pod := &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: "a", LabelSelector: &metav1.LabelSelector{}}}}
	started := func(j *batchv1.Job) { j.Status.StartTime = new(metav1.Unix(0, 0)) }
	active := func(j *batchv1.Job) { j.Status.Active = 1 }
	running := func(j *batchv1.Job) { j.Spec.Suspend = new(false) }
	fresh := func(*batchv1.Job) {}
	for _, c := range []struct {
		name   string
		of     func(*batchv1.Job)
		change func(*corev1.PodTemplateSpec)
		at     string // of the error; "" is none
	}{
		{"node selector", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector = map[string]string{"a": "b"}
		}, ""},
		{"labels", fresh, func(t *corev1.PodTemplateSpec) {
			t.Labels["a"], t.Annotations = "b", map[string]string{"a": "b"}
		}, ""},
		{"tolerations", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, ""},
		{"gates", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}}
		}, ""},
		{"node affinity", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.Affinity = &corev1.Affinity{NodeAffinity: node}
		}, ""},
		{"pod affinity", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.Affinity = &corev1.Affinity{PodAffinity: pod}
		}, "spec.template.spec"},
		{"resources", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Resources.Requests = requests
		}, ""},
		{"a pod's resources", fresh, func(t *corev1.PodTemplateSpec) {
			t.Spec.Resources = &corev1.ResourceRequirements{Requests: requests}
		}, "spec.template.spec"},
		{"image", fresh, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "y" }, "spec.template.spec"},
		{"one more container", fresh, func(t *corev1.PodTemplateSpec) {
			c := *t.Spec.Containers[0].DeepCopy()
			c.Name = "i"
			t.Spec.InitContainers = append(t.Spec.InitContainers, c)
		}, "spec.template.spec"},
		{"scheduler", fresh, func(t *corev1.PodTemplateSpec) { t.Spec.SchedulerName = "s" }, "spec.template.spec"},
		{"running", running, func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector = map[string]string{"a": "b"}
		}, "spec.template"},
		{"started", started, func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector = map[string]string{"a": "b"}
		}, "spec.template"},
		{"active", active, func(t *corev1.PodTemplateSpec) {
			t.Spec.NodeSelector = map[string]string{"a": "b"}
		}, "spec.template"},
	} {
		old := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u"},
			Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{}}}},
			}}}
		defaultJob(old)
		generateSelector(old)
		c.of(old)
		obj := old.DeepCopy()
		c.change(&obj.Spec.Template)
		at := ""
		for _, e := range validateJobUpdate(obj, old) {
			at += e.Field
		}
		if at != c.at {
			t.Errorf("%s: refused at %s, want %s", c.name, fmt.Sprintf("%q", at), c.at)
		}
	}
}

// TestGeneratedLabelsOnJob: a job without labels gets those of its template, generated ones with them; one with labels
// keeps its own.
func TestGeneratedLabelsOnJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		job, template map[string]string
		want          int
	}{{nil, nil, 4}, {nil, map[string]string{"a": "b"}, 5},
		{map[string]string{"a": "b"}, map[string]string{"a": "b"}, 1}} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u", Labels: c.job}}
		j.Spec.Template.Labels = c.template
		defaultJob(j)
		generateSelector(j)
		labelJob(j)
		if len(j.Labels) != c.want {
			t.Errorf("job %v, template %v: the job's labels are %v", c.job, c.template, j.Labels)
		}
	}
}
