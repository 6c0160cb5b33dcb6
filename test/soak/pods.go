package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A short pod is of one of these kinds, in turn. Together they use what a node has to clean up: volumes of several
// sorts, cgroups of all classes of service, Services, init containers and sidecars.
var kinds = [...]struct {
	name  string
	spec  func() corev1.PodSpec
	runs  func(*corev1.Pod) bool // the pod did what it is for
	serve bool                   // it has a Service of its own
}{
	{"completes", completes, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded }, false},
	{"serves", serves, isReady, true},
	{"sidecar", withSidecar, isReady, false},
}

var token = corev1.Volume{Name: "config",
	VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{
			Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}},
	}}}}

// completes fails unless its volumes, token included, are there to its end.
func completes() corev1.PodSpec {
	const script = `set -e; echo $HOSTNAME >/data/a; sleep 2; test "$(cat /config/name)" = "$(cat /data/a)"; test -s /config/ca.crt; test -s /var/run/secrets/kubernetes.io/serviceaccount/token`
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: image, Command: []string{"sh", "-c", script},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"},
				{Name: "config", MountPath: "/config"}}}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, token},
	}
}

func serves() corev1.PodSpec {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("32Mi")}
	return corev1.PodSpec{
		Containers: []corev1.Container{
			{Name: "c", Image: image,
				Command:   []string{"sh", "-c", "echo ok >/data/counter; exec httpd -f -p 8080 -h /data"},
				Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/counter", Port: intstr.FromInt32(8080)}},
					PeriodSeconds: 1, TimeoutSeconds: 5},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}},
	}
}

func withSidecar() corev1.PodSpec {
	always, idle := corev1.ContainerRestartPolicyAlways, []string{"sh", "-c", "trap exit TERM; sleep 1000 & wait"}
	return corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Name: "init", Image: image, Command: []string{"sh", "-c", "echo ok >/data/a"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}},
			{Name: "side", Image: image, Command: idle, RestartPolicy: &always},
		},
		Containers: []corev1.Container{{Name: "c", Image: image, Command: idle,
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"},
				{Name: "config", MountPath: "/config"}}}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, token},
	}
}

// makePods starts a pod's life rate times a minute until working ends, and returns when the last of them is over.
func makePods(working, ctx context.Context, c *clusterUnderTest, j *journal, rate int) {
	var lives sync.WaitGroup
	defer lives.Wait()
	tick := time.NewTicker(time.Minute / time.Duration(rate))
	defer tick.Stop()
	for i := 0; ; i++ {
		lives.Go(func() { live(ctx, c, j, i) })
		select {
		case <-tick.C:
		case <-working.Done():
			return
		}
	}
}

// live creates a short pod, sees it do what it is for, deletes it, and sees it go. A request that fails, as it may
// while a component is away, is made again.
func live(ctx context.Context, c *clusterUnderTest, j *journal, i int) {
	kind := kinds[i%len(kinds)]
	pods, services := c.client.CoreV1().Pods(namespace), c.client.CoreV1().Services(namespace)
	name := fmt.Sprintf("short-%d", i)
	var pod *corev1.Pod
	var err error
	failed := func(what string) {
		if ctx.Err() == nil {
			j.found(uidOf(pod), "%s %s within %s: %v; %s", name, what, patience, err, describe(pod))
		}
	}
	labels, spec := map[string]string{"app": name}, kind.spec()
	// left alone, they would all go to the emptier one
	spec.NodeSelector = map[string]string{corev1.LabelHostname: nodes[i%len(nodes)]}
	if kind.serve && !poll(ctx, 500*time.Millisecond, func() bool {
		_, err = services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Selector: labels,
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	}) {
		failed("could not get a Service")
	}
	if !poll(ctx, 500*time.Millisecond, func() bool {
		pod, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: spec},
			metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // an earlier attempt whose answer was lost
			pod, err = pods.Get(ctx, name, metav1.GetOptions{})
		}
		return err == nil
	}) {
		failed("could not be created")
		return
	}
	uid := string(pod.UID)
	j.pod(uid, func(s *podStory) { s.name, s.kind, s.created = name, kind.name, time.Now() })
	look := func(done func(*corev1.Pod) bool) func() bool {
		return func() bool {
			var now *corev1.Pod
			if now, err = pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
				return apierrors.IsNotFound(err)
			}
			pod = now
			switch explained, all := explain(pod, j); {
			case !all:
				j.found(uid, "%s ended or was started again without a cause: %s", name, describe(pod))
			case explained > 0:
				j.explained(uid, name, describe(pod))
			}
			j.pod(uid, func(s *podStory) { s.node = pod.Spec.NodeName })
			return done(pod)
		}
	}
	if !poll(ctx, 500*time.Millisecond, look(func(p *corev1.Pod) bool {
		return kind.runs(p) || p.Status.Phase == corev1.PodFailed
	})) {
		failed("did not run")
	} else if err != nil {
		failed("vanished before it was deleted")
	} else if kind.runs(pod) {
		j.pod(uid, func(s *podStory) { s.ran = time.Now() })
	}
	grace := int64(2)
	if !poll(ctx, 500*time.Millisecond, func() bool {
		err = pods.Delete(ctx, name,
			metav1.DeleteOptions{GracePeriodSeconds: &grace, Preconditions: metav1.NewUIDPreconditions(uid)})
		return err == nil || apierrors.IsNotFound(err)
	}) {
		failed("could not be deleted")
	}
	j.pod(uid, func(s *podStory) { s.deleted = time.Now() })
	if kind.serve && !poll(ctx, 500*time.Millisecond, func() bool {
		err = services.Delete(ctx, name, metav1.DeleteOptions{})
		return err == nil || apierrors.IsNotFound(err)
	}) {
		failed("could not lose its Service")
	}
	if !poll(ctx, 500*time.Millisecond, look(func(*corev1.Pod) bool { return false })) {
		failed("did not go")
		return
	}
	j.pod(uid, func(s *podStory) { s.vanish = time.Now() })
}

func uidOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return string(pod.UID)
}

// explain counts how often a container of a short pod ended for a reason that the kills give, and reports whether that
// is all that there is to explain. A start that a kill cuts short before the container ran is no restart when it is
// made again. What is left are two moments of containerd's own, in which nobody can know better:
//
//   - It is killed after it took an exit code from the shim and before it stored it. Then the code is 255, "Unknown".
//     Only a
//     container that ends by itself can meet that.
//   - It is asked to start a container, has made the task, and the kubelet that asked is killed. Then it takes the task
//     away again.
func explain(pod *corev1.Pod, j *journal) (total int, all bool) {
	failed := pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil
	for _, s := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		ends := pod.Spec.RestartPolicy == corev1.RestartPolicyNever || s.Name == "init"
		explained := 0
		for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
			switch {
			case t == nil || t.ExitCode == 0:
			case t.Reason == "Unknown" && ends &&
				j.killedSince(pod.Spec.NodeName+"/containerd", pod.CreationTimestamp.Time),
				t.Reason == "StartError" && strings.Contains(t.Message, "context canceled") &&
					j.killedSince(pod.Spec.NodeName+"/kubelet", pod.CreationTimestamp.Time):
				explained++
				total++
			case pod.DeletionTimestamp == nil:
				return total, false
			}
		}
		if int(s.RestartCount) > explained {
			return total, false
		}
	}
	return total, !failed || total > 0
}

// describe is a pod's state in a line.
func describe(pod *corev1.Pod) string {
	if pod == nil {
		return "no pod"
	}
	out := fmt.Sprintf("phase %s %s %s", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		out += fmt.Sprintf("; %s: ready %t, %d restarts", s.Name, s.Ready, s.RestartCount)
		switch {
		case s.State.Waiting != nil:
			out += fmt.Sprintf(", waiting: %s %s", s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil:
			out += fmt.Sprintf(", ended: %s %d %s", s.State.Terminated.Reason, s.State.Terminated.ExitCode,
				s.State.Terminated.Message)
		}
		if t := s.LastTerminationState.Terminated; t != nil {
			out += fmt.Sprintf(", ended before: %s %d", t.Reason, t.ExitCode)
		}
	}
	return out
}

// deleteNamespace ends the long-lived pods, too: what is left of a namespace would be found here.
func deleteNamespace(ctx context.Context, c *clusterUnderTest, j *journal) error {
	namespaces := c.client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	var last *corev1.Namespace
	if !poll(ctx, 500*time.Millisecond, func() bool {
		now, err := namespaces.Get(ctx, namespace, metav1.GetOptions{})
		if err == nil {
			last = now
		}
		return apierrors.IsNotFound(err)
	}) {
		j.found("", "the namespace does not go: %+v", last.Status)
	}
	return nil
}
