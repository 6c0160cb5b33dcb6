package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// podTries is how many pods are started one after the other; replicas is the size of the Deployment.
// fullNode is how many pods are made at once on one node, fullTries how often.
const (
	podTries  = 20
	replicas  = 30
	fullNode  = 100
	fullTries = 3
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
	if err := bringImage(ctx, client, s); err != nil {
		return nil, err
	}
	var alone *bare
	if s.runtime != "" {
		if alone, err = dialRuntime(ctx, s.runtime, s.handler, s.image); err != nil {
			return nil, err
		}
		defer alone.client.Close()
	}
	var running, gone, bareRunning []float64
	for i := range podTries {
		if alone != nil {
			took, err := alone.one(ctx, fmt.Sprintf("bare-%d", i))
			if err != nil {
				return nil, err
			}
			bareRunning = append(bareRunning, took.Seconds()*1000)
		}
		r, g, err := onePod(ctx, client, fmt.Sprintf("bench-%d", i), podSpec(s.image))
		if err != nil {
			return nil, err
		}
		running, gone = append(running, r.Seconds()*1000), append(gone, g.Seconds()*1000)
	}
	first, all, err := oneDeployment(ctx, client, replicas, podSpec(s.image))
	if err != nil {
		return nil, err
	}
	figures := []figure{
		{"create to Running, p50 of 20", "ms", median(running)},
		{"delete to gone, p50 of 20", "ms", median(gone)},
		{fmt.Sprintf("Deployment of %d, first available", replicas), "s", first.Seconds()},
		{fmt.Sprintf("Deployment of %d, all available", replicas), "s", all.Seconds()},
	}
	if alone == nil {
		return figures, nil
	}
	figures = append(figures, figure{"the same calls to the runtime alone, p50 of 20", "ms", median(bareRunning)})
	more, err := measureFull(ctx, client, alone, s)
	return append(figures, more...), err
}

// bringImage runs a pod, on the node of the runtime if there is one: a node has an image once a pod needed it.
func bringImage(ctx context.Context, client kubernetes.Interface, s side) error {
	spec := podSpec(s.image)
	if s.runtime != "" {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: s.node}
	}
	_, _, err := onePod(ctx, client, "bench-image", spec)
	return err
}

// measureFull measures as many pods on one node as it takes by default except what may run there already, with
// Kubernetes and without, in turns.
func measureFull(ctx context.Context, client kubernetes.Interface, alone *bare, s side) ([]figure, error) {
	spec := podSpec(s.image)
	spec.NodeSelector = map[string]string{corev1.LabelHostname: s.node}
	var with, without []float64
	for range fullTries {
		if err := noPods(ctx, client); err != nil {
			return nil, err
		}
		took, err := alone.burst(ctx, fullNode)
		if err != nil {
			return nil, err
		}
		without = append(without, took.Seconds())
		_, all, err := oneDeployment(ctx, client, fullNode, spec)
		if err != nil {
			return nil, err
		}
		with = append(with, all.Seconds())
	}
	return []figure{
		{fmt.Sprintf("%d pods on one node, median of %d", fullNode, fullTries), "s", median(with)},
		{fmt.Sprintf("the same calls to the runtime alone, median of %d", fullTries), "s", median(without)},
	}, nil
}

// noPods waits until the pods of the Deployment before are gone.
func noPods(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx,
				metav1.ListOptions{LabelSelector: "app=bench"})
			return err == nil && len(list.Items) == 0, err
		})
}

func podSpec(image string) corev1.PodSpec {
	grace := int64(1)
	return corev1.PodSpec{TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{Name: "c", Image: image,
			ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"}}}}
}

// onePod returns the times from create to Running and from delete to the DELETED event.
func onePod(ctx context.Context, client kubernetes.Interface, name string, spec corev1.PodSpec) (running,
	gone time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	w, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, 0, err
	}
	defer w.Stop()
	began := time.Now()
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec},
		metav1.CreateOptions{}); err != nil {
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

// oneDeployment returns the times from create to the first and to the last available of n replicas, and deletes the
// Deployment.
func oneDeployment(ctx context.Context, client kubernetes.Interface, n int32, spec corev1.PodSpec) (first,
	all time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
	labels := map[string]string{"app": "bench"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "bench"}, Spec: appsv1.DeploymentSpec{Replicas: &n,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
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
		if ok && d.Status.AvailableReplicas == n {
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
