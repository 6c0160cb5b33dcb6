package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// podTries is how many pods are started one after the other; replicas is the size of the Deployment.
const (
	podTries = 20
	replicas = 30
)

// measurePods measures a running cluster: from POST to the watch event that says so, with the image present.
func measurePods(ctx context.Context, s side) ([]figure, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var running, gone []float64
	for i := range podTries {
		r, g, err := onePod(ctx, client, fmt.Sprintf("bench-%d", i), s.image)
		if err != nil {
			return nil, err
		}
		running, gone = append(running, r.Seconds()*1000), append(gone, g.Seconds()*1000)
	}
	first, all, err := oneDeployment(ctx, client, s.image)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"create to Running, p50 of 20", "ms", median(running)},
		{"delete to gone, p50 of 20", "ms", median(gone)},
		{fmt.Sprintf("Deployment of %d, first available", replicas), "s", first.Seconds()},
		{fmt.Sprintf("Deployment of %d, all available", replicas), "s", all.Seconds()},
	}, nil
}

func podSpec(image string) corev1.PodSpec {
	grace := int64(1)
	return corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: image,
		ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"}}}}
}

// onePod returns the times from create to Running and from delete to the DELETED event.
func onePod(ctx context.Context, client kubernetes.Interface, name, image string) (running, gone time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, 0, err
	}
	defer w.Stop()
	began := time.Now()
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: podSpec(image)}, metav1.CreateOptions{}); err != nil {
		return 0, 0, err
	}
	for event := range w.ResultChan() {
		p, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok:
			return 0, 0, fmt.Errorf("watch: %v", event.Object)
		case event.Type == watch.Deleted:
			return running, time.Since(began), nil
		case running == 0 && p.Status.Phase == corev1.PodRunning:
			running = time.Since(began)
			began = time.Now()
			if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return 0, 0, err
			}
		}
	}
	return 0, 0, fmt.Errorf("pod %s: the watch ended: %v", name, ctx.Err())
}

// oneDeployment returns the times from create to the first and to the last available replica, and deletes the Deployment.
func oneDeployment(ctx context.Context, client kubernetes.Interface, image string) (first, all time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
	n, labels := int32(replicas), map[string]string{"app": "bench"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: appsv1.DeploymentSpec{Replicas: &n,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(image)}}}
	w, err := deployments.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=bench"})
	if err != nil {
		return 0, 0, err
	}
	defer w.Stop()
	began := time.Now()
	if _, err := deployments.Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return 0, 0, err
	}
	for event := range w.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if ok && first == 0 && d.Status.AvailableReplicas > 0 {
			first = time.Since(began)
		}
		if ok && d.Status.AvailableReplicas == replicas {
			all = time.Since(began)
			background := metav1.DeletePropagationBackground
			return first, all, deployments.Delete(ctx, "bench", metav1.DeleteOptions{PropagationPolicy: &background})
		}
	}
	return 0, 0, fmt.Errorf("deployment: the watch ended: %v", ctx.Err())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
