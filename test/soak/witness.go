package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespace = "soak"
	image     = "localhost/busybox:1.0"
	// askEvery is how often each witness is asked, and the Service from each node.
	askEvery = 5 * time.Second
	// attempts is how many times in a row an answer may be missing: the machine is shared, and an answer a second late
	// is none.
	attempts = 10
)

// witnessScript counts into a file of an emptyDir and serves it. A container that was started again would begin at 1,
// and one that lost its volume would have no file.
const witnessScript = `httpd -p 8080 -h /data; i=0; while :; do i=$((i+1)); echo $i >/data/.new && mv /data/.new /data/counter || exit 1; sleep 1; done`

// witnesses are pods that must live through everything: two per node, one of them with exec probes, behind one Service.
type witnesses struct {
	cluster *clusterUnderTest
	pods    []*witness
	service string // the Service's address
}

// witness is one long-lived pod as it was at the start.
type witness struct {
	name, ip, containerID string
	uid                   string
	last                  int // the last number seen
}

func witnessPod(name, node string, exec bool) *corev1.Pod {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/counter", Port: intstr.FromInt32(8080)}}, PeriodSeconds: 5,
		TimeoutSeconds: 5}
	if exec {
		probe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"test", "-s", "/data/counter"}}}, PeriodSeconds: 5,
			TimeoutSeconds: 5}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "witness"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{Name: "c", Image: image, Command: []string{"sh", "-c", witnessScript},
				LivenessProbe: probe, ReadinessProbe: probe,
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

func startWitnesses(ctx context.Context, c *clusterUnderTest) (*witnesses, error) {
	w := &witnesses{cluster: c}
	core := c.client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	service, err := core.Services(namespace).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "witness"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "witness"},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	w.service = service.Spec.ClusterIP
	var names []string
	for _, node := range nodes {
		for _, exec := range []bool{false, true} {
			pod := witnessPod(fmt.Sprintf("witness-%s-%t", node, exec), node, exec)
			pod.Name = strings.NewReplacer("true", "exec", "false", "http").Replace(pod.Name)
			create := func() bool { // the namespace's service account may not be there yet
				_, err = core.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
				return err == nil
			}
			if !poll(ctx, 200*time.Millisecond, create) {
				return nil, err
			}
			names = append(names, pod.Name)
		}
	}
	for _, name := range names {
		var pod *corev1.Pod
		if !poll(ctx, 200*time.Millisecond, func() bool {
			pod, err = core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			return err == nil && isReady(pod)
		}) {
			return nil, fmt.Errorf("pod %s is not ready: %w", name, err)
		}
		w.pods = append(w.pods, &witness{name: name, uid: string(pod.UID), ip: pod.Status.PodIP,
			containerID: pod.Status.ContainerStatuses[0].ContainerID})
	}
	return w, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// watch asks the witnesses until ctx ends.
func (w *witnesses) watch(ctx context.Context, j *journal) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		for _, p := range w.pods {
			w.ask(ctx, j, p)
		}
		for _, node := range nodes {
			w.askService(ctx, j, node)
		}
		w.check(ctx, j)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask reads a witness's counter at its own address.
func (w *witnesses) ask(ctx context.Context, j *journal, p *witness) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var last error
	for range attempts {
		resp, err := client.Get("http://" + p.ip + ":8080/counter")
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 64))
		resp.Body.Close()
		if err != nil {
			last = err
			continue
		}
		now, err := strconv.Atoi(strings.TrimSpace(string(body)))
		if err != nil {
			last = fmt.Errorf("it says %s: %q", resp.Status, body)
			continue
		}
		if now < p.last {
			j.found("", "%s counts from the start again: %d after %d", p.name, now, p.last)
		}
		p.last = now
		j.answered()
		return
	}
	if ctx.Err() == nil {
		j.found("", "%s does not answer at %s: %v", p.name, j.clock(time.Now()), last)
	}
}

// askService asks the Service from a node, through the node's rules.
func (w *witnesses) askService(ctx context.Context, j *journal, node string) {
	var out string
	var err error
	for range attempts {
		if out, err = w.cluster.getFrom(ctx, node, net.JoinHostPort(w.service, "80"), "/counter"); err == nil &&
			out != "" {
			j.answered()
			return
		}
	}
	if ctx.Err() == nil {
		j.found("", "the Service does not answer from %s at %s: %q %v", node, j.clock(time.Now()), out, err)
	}
}

// check compares the witnesses with what they were at the start. An API server that is away is asked next time.
func (w *witnesses) check(ctx context.Context, j *journal) {
	for _, p := range w.pods {
		pod, err := w.cluster.client.CoreV1().Pods(namespace).Get(ctx, p.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			j.found("", "%s is gone", p.name)
		case err != nil:
		case string(pod.UID) != p.uid:
			j.found("", "%s is another pod", p.name)
		default:
			for _, s := range pod.Status.ContainerStatuses {
				if s.RestartCount != 0 || s.ContainerID != p.containerID {
					j.found("", "%s was started again without a cause: %d restarts, container %s instead of %s, last state %+v", p.name, s.RestartCount, s.ContainerID, p.containerID, s.LastTerminationState.Terminated)
				}
			}
		}
	}
}
