package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/controller/controllertest"
)

// world is a cluster with the manager running and every new pod becoming ready at once.
type world struct {
	*apiclient.Client
	admin *rest.Config
	ips   int
}

// TestManager runs all controllers, each with its own service account, against a real API server.
func TestManager(t *testing.T) {
	t.Parallel()
	c := controllertest.Start(t)
	cloud := filepath.Join(t.TempDir(), "cloud.yaml")
	if err := os.WriteFile(cloud, []byte("loadBalancerCIDRs: [10.200.0.0/29]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := newCommand()
	flags := []string{"--kubeconfig=" + c.Kubeconfig, "--secure-port=0", "--use-service-account-credentials",
		"--controllers=*,tokencleaner",
		"--root-ca-file=" + c.CAFile, "--service-account-private-key-file=" + c.KeyFile, "--allocate-node-cidrs",
		"--cluster-cidr=10.244.0.0/16",
		"--service-cluster-ip-range=10.96.0.0/16", "--cloud-config=" + cloud, "--node-monitor-grace-period=3s",
		"--node-startup-grace-period=3s", "-v=2"}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	cmd.SetArgs(flags)
	// The manager sets client-go's logger before it first says something; only then may the test use client-go too.
	log := &firstWrite{Writer: os.Stderr, done: make(chan struct{})}
	cmd.SetErr(log)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the manager ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the manager does not stop")
		}
	})
	select {
	case <-log.done:
	case err := <-done:
		done <- nil
		t.Fatalf("the manager ended with %v", err)
	}
	w := &world{Client: c.Client(t), admin: c.Admin}
	t.Run("namespace", w.namespace)
	t.Run("rollout", w.rollout)
	t.Run("endpoints", w.endpoints)
	t.Run("garbage", w.garbage)
	t.Run("bad references", w.badReferences)
	t.Run("custom resources", w.customResources)
	t.Run("a namespace beside a dead aggregated server", w.namespaceBesideDead)
	t.Run("replication controller", w.replicationController)
	t.Run("node", w.node)
	t.Run("daemon set", w.daemonSet)
	t.Run("stateful set", w.statefulSet)
	t.Run("jobs", w.jobs)
	t.Run("orphaned pods of jobs", w.orphanedPods)
	t.Run("cron jobs", w.cronJobs)
	t.Run("quotas", w.quotas)
	t.Run("token", w.token)
	t.Run("load balancer", w.balancer)
}

// firstWrite is a writer that tells when it was first written to.
type firstWrite struct {
	io.Writer
	once sync.Once
	done chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.done) })
	return w.Writer.Write(p)
}

// makeNamespace returns a fresh namespace with its service account.
func (w *world) makeNamespace(t *testing.T, name string) string {
	t.Helper()
	if _, err := core.Namespaces(w.Client).Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the default service account", func() string {
		_, err := core.ServiceAccounts(w.Client).Get(t.Context(), name, "default")
		return text(err)
	})
	return name
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// namespace: the root CA arrives; deletion waits for what has a finalizer, says so, and takes everything.
func (w *world) namespace(t *testing.T) {
	ns := w.makeNamespace(t, "t-namespace")
	controllertest.Eventually(t, "the root CA", func() string {
		_, err := core.ConfigMaps(w.Client).Get(t.Context(), ns, "kube-root-ca.crt")
		return text(err)
	})
	held := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held", Finalizers: []string{"example.com/hold"}}}
	if _, err := core.ConfigMaps(w.Client).Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if err := core.Namespaces(w.Client).Delete(t.Context(), "", ns, ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the conditions of a stuck namespace", func() string {
		n, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
		if err != nil {
			return err.Error()
		}
		all := ""
		for _, c := range n.Status.Conditions {
			all += string(c.Status) + " " + c.Message + "; "
		}
		for _, want := range []string{"True Some resources are remaining: configmaps. has 1 resource instances",
			"True Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"} {
			if !strings.Contains(all, want) {
				return all
			}
		}
		return ""
	})
	if _, err := core.ConfigMaps(w.Client).Patch(t.Context(), ns, "held", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the namespace to be gone", func() string {
		_, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint("still there: ", err)
	})
}

func webDeployment(ns, name string, n int32) *appsv1.Deployment {
	l := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "one", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				}}}},
		},
	}
}

// makeReady plays the kubelet for the pods of a namespace: those without an address run now; those being deleted go.
func (w *world) makeReady(t *testing.T, ns string) {
	t.Helper()
	pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Status.PodIP != "" || p.DeletionTimestamp != nil {
			continue
		}
		w.ips++
		ip := fmt.Sprintf("10.9.%d.%d", w.ips/250, w.ips%250+1)
		patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, ip, ip, time.Now().UTC().Format(time.RFC3339))
		if _, err := core.Pods(w.Client).Patch(t.Context(), ns, p.Name, types.StrategicMergePatchType, []byte(patch),
			"status"); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// available waits until the Deployment is complete with n replicas of its current template.
func (w *world) available(t *testing.T, ns, name string, n int32) {
	t.Helper()
	controllertest.Eventually(t, "the rollout of "+name, func() string {
		w.makeReady(t, ns)
		d, err := apps.Deployments(w.Client).Get(t.Context(), ns, name)
		if err != nil {
			return err.Error()
		}
		s := d.Status
		if s.ObservedGeneration == d.Generation && s.UpdatedReplicas == n && s.Replicas == n &&
			s.AvailableReplicas == n {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
}

// rollout: create, update, scale, roll back; revisions and pods as Kubernetes has them.
func (w *world) rollout(t *testing.T) {
	ns := w.makeNamespace(t, "t-rollout")
	begin := time.Now()
	if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, "web", 30)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "30 pods", func() string {
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || len(pods) != 30 {
			return fmt.Sprint(len(pods), err)
		}
		return ""
	})
	t.Logf("30 pods created %s after their Deployment", time.Since(begin).Round(time.Millisecond))
	w.available(t, ns, "web", 30)
	for _, patch := range []string{`{"spec":{"replicas":4}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}}`} {
		if _, err := apps.Deployments(w.Client).Patch(t.Context(), ns, "web", types.StrategicMergePatchType,
			[]byte(patch)); err != nil {
			t.Fatal(err)
		}
		w.available(t, ns, "web", 4)
	}
	sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	for _, rs := range sets {
		got[rs.Annotations["deployment.kubernetes.io/revision"]] = *rs.Spec.Replicas
	}
	if len(sets) != 2 || got["2"] != 0 || got["3"] != 4 {
		t.Errorf("replicas by revision = %v, want revision 1 to have become 3", got)
	}
	pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Spec.Containers[0].Image != "one" {
			t.Errorf("pod %s runs %s after the rollback", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

// endpoints: both forms follow the pods behind a Service, ready or not.
func (w *world) endpoints(t *testing.T) {
	ns := w.makeNamespace(t, "t-endpoints")
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
	}}
	if _, err := core.Services(w.Client).Create(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, "web", 3)); err != nil {
		t.Fatal(err)
	}
	w.available(t, ns, "web", 3)
	w.expectEndpoints(t, ns, 3)
	if _, err := apps.Deployments(w.Client).Patch(t.Context(), ns, "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`)); err != nil {
		t.Fatal(err)
	}
	w.expectEndpoints(t, ns, 0)
	if err := core.Services(w.Client).Delete(t.Context(), ns, "web", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "no endpoints of a deleted Service", func() string {
		slices, err := discovery.EndpointSlices(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		eps, err2 := core.Endpoints(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || err2 != nil || len(slices)+len(eps) > 0 {
			return fmt.Sprint(len(slices), " slices, ", len(eps), " endpoints ", err, err2)
		}
		return ""
	})
}

func (w *world) expectEndpoints(t *testing.T, ns string, n int) {
	t.Helper()
	controllertest.Eventually(t, fmt.Sprint(n, " endpoints"), func() string {
		slices, err := discovery.EndpointSlices(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || len(slices) != 1 {
			return fmt.Sprint(len(slices), " slices ", err)
		}
		s := slices[0]
		ready := 0
		for _, e := range s.Endpoints {
			if *e.Conditions.Ready {
				ready++
			}
		}
		if ready != n || n > 0 && *s.Ports[0].Port != 8080 {
			return fmt.Sprintf("%+v", s.Endpoints)
		}
		ep, err := core.Endpoints(w.Client).Get(t.Context(), ns, "web")
		if err != nil {
			return err.Error()
		}
		old := 0
		for _, sub := range ep.Subsets {
			old += len(sub.Addresses)
		}
		if old != n {
			return fmt.Sprintf("Endpoints have %d", old)
		}
		return ""
	})
}

// garbage: background, foreground and orphaning deletion, and an owner that never was.
func (w *world) garbage(t *testing.T) {
	ns := w.makeNamespace(t, "t-garbage")
	left := func() (names []string) {
		sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range sets {
			names = append(names, "rs/"+rs.Name)
		}
		for _, p := range pods {
			names = append(names, "pod/"+p.Name)
		}
		return names
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		name := strings.ToLower(string(policy))
		if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, name, 2)); err != nil {
			t.Fatal(err)
		}
		w.available(t, ns, name, 2)
		if err := apps.Deployments(w.Client).DeleteWith(t.Context(), ns, name,
			metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		controllertest.Eventually(t, name+" deletion", func() string {
			_, err := apps.Deployments(w.Client).Get(t.Context(), ns, name)
			names := left()
			if want := map[bool]int{false: 0,
				true: 3}[policy == metav1.DeletePropagationOrphan]; apierrors.IsNotFound(err) && len(names) == want {
				return ""
			}
			return fmt.Sprint(err, names)
		})
	}
	sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil || len(sets) != 1 || len(sets[0].OwnerReferences) != 0 {
		t.Errorf("the orphaned ReplicaSet: %v, %v", sets, err)
	}
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "child",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "no-such-uid"}}}}
	if _, err := core.ConfigMaps(w.Client).Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "a child without owner to go", func() string {
		if _, err := core.ConfigMaps(w.Client).Get(t.Context(), ns, "child"); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}

// replicationController: it adopts a matching orphan, fills up, and releases a pod that no longer matches.
func (w *world) replicationController(t *testing.T) {
	ns := w.makeNamespace(t, "t-rc")
	l := map[string]string{"app": "rc"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "one"}}}
	if _, err := core.Pods(w.Client).Create(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orphan", Labels: l}, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rc"},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: new(int32(2)), Selector: l,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: spec},
		}}
	if _, err := core.ReplicationControllers(w.Client).Create(t.Context(), rc); err != nil {
		t.Fatal(err)
	}
	count := func(wantOwned, wantAll int) func() string {
		return func() string {
			pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
			owned := len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
				return metav1.GetControllerOf(p) == nil
			}))
			if err != nil || owned != wantOwned || len(pods) != wantAll {
				return fmt.Sprint(owned, " of ", len(pods), err)
			}
			return ""
		}
	}
	controllertest.Eventually(t, "adoption", count(2, 2))
	if _, err := core.Pods(w.Client).Patch(t.Context(), ns, "orphan", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"other"}}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "release and replacement", count(2, 3))
}

// node: a node gets its CIDR; when it stays silent while another one does not, it is tainted, and a pod that does not
// tolerate that leaves.
func (w *world) node(t *testing.T) {
	ns := w.makeNamespace(t, "t-node")
	renew := w.healthyNode(t, "n0")
	if _, err := core.Nodes(w.Client).Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: corev1.PodSpec{
		NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "one"}},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(1))},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
	}}
	if _, err := core.Pods(w.Client).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "CIDR, TTL, taints and eviction", func() string {
		renew()
		n, err := core.Nodes(w.Client).Get(t.Context(), "", "n1")
		if err != nil {
			return err.Error()
		}
		p, err := core.Pods(w.Client).Get(t.Context(), ns, "p")
		evicted := err == nil && p.DeletionTimestamp != nil || apierrors.IsNotFound(err)
		if !strings.HasPrefix(n.Spec.PodCIDR, "10.244.") || len(n.Spec.Taints) < 2 || !evicted ||
			n.Annotations[corev1.ObjectTTLAnnotationKey] != "0" {
			return fmt.Sprint(n.Annotations, n.Spec, " evicted: ", evicted, err)
		}
		return ""
	})
}

// healthyNode makes a node that has its range and is ready as long as renew is called every now and then.
func (w *world) healthyNode(t *testing.T, name string) (renew func()) {
	nodes, leases := core.Nodes(w.Client), coordination.Leases(w.Client)
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	lease, err := leases.Create(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	renew = func() {
		lease.Spec.RenewTime = new(metav1.NowMicro())
		if lease, err = leases.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	controllertest.Eventually(t, "the range of "+name, func() string {
		renew()
		n, err := nodes.Get(t.Context(), "", name)
		if err != nil || n.Spec.PodCIDR == "" {
			return fmt.Sprint(n.Spec, err)
		}
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		_, err = nodes.UpdateStatus(t.Context(), n)
		return text(err)
	})
	return renew
}

// token: a token secret is filled with a token that the server accepts, and goes with its account.
func (w *world) token(t *testing.T) {
	ns := w.makeNamespace(t, "t-token")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tok",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "bot"}},
		Type: corev1.SecretTypeServiceAccountToken}
	if _, err := core.ServiceAccounts(w.Client).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "bot"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Secrets(w.Client).Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the token", func() string {
		s, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok")
		if err != nil || strings.Count(string(s.Data["token"]), ".") != 2 {
			return fmt.Sprint("no token yet ", err)
		}
		return ""
	})
	s, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok")
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(w.admin)
	config.BearerToken = string(s.Data["token"])
	bot, err := apiclient.New(config, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.ServiceAccounts(bot).Get(t.Context(), ns, "bot"); !apierrors.IsForbidden(err) {
		t.Errorf("with the token: %v", err)
	}
	if s, err = core.Secrets(w.Client).Get(t.Context(), ns, "tok"); err != nil ||
		s.Labels["kubernetes.io/legacy-token-last-used"] != time.Now().UTC().Format(time.DateOnly) {
		t.Errorf("its use is not noted: %v, %v", s.Labels, err)
	}
	if err := core.ServiceAccounts(w.Client).Delete(t.Context(), ns, "bot", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the secret to go with its account", func() string {
		if _, err := core.Secrets(w.Client).Get(t.Context(), ns, "tok"); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}
