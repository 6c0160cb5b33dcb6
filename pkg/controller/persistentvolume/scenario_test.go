package persistentvolume

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"bonsai/api/scheme"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	storageclient "bonsai/pkg/apiclient/storage"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var (
	reference = flag.String("reference", "",
		"record the golden file from the API server at this URL, which runs another binder")
	token = flag.String("token", "", "the token of an administrator of -reference")
)

const golden = "testdata/scenario.golden"

// TestScenario: volumes and claims come, are bound and go, and after each step they and the events on them are as a
// kube-controller-manager v1.37.2 leaves them. Record again with -args -reference https://… -token … (on a server
// without the plug-in StorageObjectInUseProtection, whose manager has --pvclaimbinder-sync-period=1s).
func TestScenario(t *testing.T) {
	var w *scenario
	var recorded map[string]string
	if *reference != "" {
		c, err := apiclient.New(
			&rest.Config{Host: *reference, BearerToken: *token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
			scheme.New())
		if err != nil {
			t.Fatal(err)
		}
		w = newScenario(t, c)
	} else {
		cluster := controllertest.Start(t)
		w = newScenario(t, cluster.Client(t))
		run(t, cluster)
		recorded = readGolden(t)
	}
	out, all := "", map[string]bool{}
	for _, s := range steps() {
		if *reference != "" {
			w.forget()
			s.do(w)
			out += "== " + s.name + "\n" + w.settled() + "\n"
			continue
		}
		s.do(w)
		want, told := split(recorded[s.name])
		maps.Copy(all, told)
		controllertest.Eventually(t, s.name, func() string {
			got, events := split(w.show())
			if got != want {
				return "got\n" + got + "want\n" + want
			}
			// Those that the other one's recorder suppressed because there were too many are not in the recording.
			for e := range told {
				if !events[e] {
					return "nobody said: " + e
				}
			}
			return ""
		})
	}
	if *reference != "" {
		if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for e := range w.events {
		// A step makes a class and at once a claim of it, and a controller may hear of the claim first: each kind has a
		// watch of its own.
		early := strings.Contains(e, "ProvisioningFailed: storageclass.storage.k8s.io ") &&
			strings.HasSuffix(e, " not found")
		if !all[e] && !early {
			t.Errorf("said what the other one never says: %s", e)
		}
	}
}

// split returns the lines about objects, and the events.
func split(shown string) (objects string, events map[string]bool) {
	events = map[string]bool{}
	for line := range strings.Lines(shown) {
		if strings.HasPrefix(line, "event ") {
			events[strings.TrimSuffix(line, "\n")] = true
		} else {
			objects += strings.TrimSuffix(line, "\n") + "\n"
		}
	}
	return objects, events
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, part := range strings.Split("\n"+string(raw), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		out[name] = strings.TrimSuffix(text, "\n")
	}
	return out
}

// run has our controller work on the cluster until the test ends.
func run(t *testing.T, cluster *controllertest.Cluster) {
	t.Helper()
	client := cluster.Client(t)
	ctx, cancel := context.WithCancel(t.Context())
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(core.NewEventSink(ctx, client))
	d := (&controllertest.Fake{}).Deps(t, time.Time{})
	d.Client, d.Informers, d.Workers = client, controller.NewInformers(client), 3
	d.Events = b.NewRecorder(scheme.New(), corev1.EventSource{Component: "persistentvolume-controller"})
	c, err := New(d, Config{Period: time.Second, Provisions: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go d.Informers.Run(ctx)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		b.Shutdown()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

type scenario struct {
	t       *testing.T
	volumes *apiclient.Resource[*corev1.PersistentVolume]
	claims  *apiclient.Resource[*corev1.PersistentVolumeClaim]
	classes *apiclient.Resource[*storagev1.StorageClass]
	pods    *apiclient.Resource[*corev1.Pod]
	all     *apiclient.Resource[*corev1.Event]
	events  map[string]bool
}

const ns = "default"

func newScenario(t *testing.T, c *apiclient.Client) *scenario {
	return &scenario{t: t, volumes: core.PersistentVolumes(c), claims: core.PersistentVolumeClaims(c),
		classes: storageclient.StorageClasses(c), pods: core.Pods(c), all: core.Events(c), events: map[string]bool{}}
}

// forget removes the events so far.
func (w *scenario) forget() {
	w.t.Helper()
	clear(w.events)
	list, err := w.all.List(w.t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list {
		if err := w.all.Delete(w.t.Context(), ns, e.Name, ""); err != nil && !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
	}
}

// settled returns what is shown for five seconds without a change.
func (w *scenario) settled() string {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, same := "", 0
	for same < 5 {
		<-tick.C
		if now := w.show(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}

// show describes all volumes, claims and the events of this step, without what differs in each run.
func (w *scenario) show() string {
	w.t.Helper()
	vs, err := w.volumes.List(w.t.Context(), "", metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	cs, err := w.claims.List(w.t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	es, err := w.all.List(w.t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, v := range vs {
		ref := "-"
		if r := v.Spec.ClaimRef; r != nil {
			ref = r.Name
			if r.UID != "" {
				ref += "+uid"
			}
		}
		lines = append(lines, fmt.Sprintf("volume %s %s %q claim %s %v", v.Name, v.Status.Phase, v.Status.Message, ref,
			marks(v.Annotations)))
	}
	for _, c := range cs {
		q := c.Status.Capacity[corev1.ResourceStorage]
		lines = append(lines, fmt.Sprintf("claim %s %s volume %q class %s has %s %v %v", c.Name, c.Status.Phase,
			c.Spec.VolumeName, ptr.Deref(c.Spec.StorageClassName, "(none)"), q.String(), c.Status.AccessModes,
			marks(c.Annotations)))
	}
	for _, e := range es {
		if e.Source.Component == "persistentvolume-controller" {
			text := strings.ReplaceAll(e.Message, "pods p16,p15", "pods p15,p16") // in any order
			w.events[fmt.Sprintf("event %s %s %s: %s", e.InvolvedObject.Name, e.Type, e.Reason, text)] = true
		}
	}
	return strings.Join(append(lines, slices.Sorted(maps.Keys(w.events))...), "\n")
}

func marks(m map[string]string) []string {
	var out []string
	for k, v := range m {
		if strings.Contains(k, "volume") || strings.HasPrefix(k, "pv.") {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

func (w *scenario) volume(name, size, class string, change func(*corev1.PersistentVolume)) {
	w.t.Helper()
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Spec.StorageClassName = class
	v.Spec.NFS = &corev1.NFSVolumeSource{Server: "s", Path: "/"}
	if change != nil {
		change(v)
	}
	if _, err := w.volumes.Create(w.t.Context(), v); err != nil {
		w.t.Fatal(err)
	}
}

// available waits until the volume can be had: a claim that comes before is told that there is none.
func (w *scenario) available(name string) {
	w.t.Helper()
	controllertest.Eventually(w.t, name, func() string {
		v, err := w.volumes.Get(w.t.Context(), "", name)
		if err != nil || v.Status.Phase != corev1.VolumeAvailable {
			return fmt.Sprint(v.Status.Phase, err)
		}
		return ""
	})
}

func (w *scenario) claim(name, size string, class *string, change func(*corev1.PersistentVolumeClaim)) {
	w.t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.StorageClassName = class
	if change != nil {
		change(c)
	}
	if _, err := w.claims.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *scenario) class(name, provisioner string, mode storagev1.VolumeBindingMode, byDefault bool) {
	w.t.Helper()
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner,
		VolumeBindingMode: &mode}
	if byDefault {
		c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	if _, err := w.classes.Create(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *scenario) pod(name, claim string) {
	w.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	p.Spec.AutomountServiceAccountToken = ptr.To(false)
	p.Spec.Volumes = []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	if _, err := w.pods.Create(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// remove deletes objects at once, without waiting for those who protect them.
func (w *scenario) remove(claims, volumes []string) {
	w.t.Helper()
	free := []byte(`{"metadata":{"finalizers":null}}`)
	for _, name := range claims {
		if _, err := w.claims.Patch(w.t.Context(), ns, name, types.MergePatchType, free); err != nil {
			w.t.Fatal(err)
		}
		if err := w.claims.Delete(w.t.Context(), ns, name, ""); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, name := range volumes {
		if _, err := w.volumes.Patch(w.t.Context(), "", name, types.MergePatchType, free); err != nil {
			w.t.Fatal(err)
		}
		if err := w.volumes.Delete(w.t.Context(), "", name, ""); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *scenario) patchVolume(name, patch string) {
	w.t.Helper()
	if _, err := w.volumes.Patch(w.t.Context(), "", name, types.MergePatchType, []byte(patch)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *scenario) patchClaim(name, patch string) {
	w.t.Helper()
	if _, err := w.claims.Patch(w.t.Context(), ns, name, types.MergePatchType, []byte(patch)); err != nil {
		w.t.Fatal(err)
	}
}

type act struct {
	name string
	do   func(*scenario)
}

func steps() []act {
	none := ptr.To("")
	meant := func(claim string) func(*corev1.PersistentVolume) {
		return func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: claim}
		}
	}
	naming := func(volume string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume }
	}
	return []act{
		{"a claim without a volume", func(w *scenario) { w.claim("c1", "1Gi", none, nil) }},
		{"a volume that is too small", func(w *scenario) { w.volume("small", "500Mi", "", nil) }},
		{"one that fits", func(w *scenario) { w.volume("v1", "2Gi", "", nil) }},
		{"a claim that nothing is left for, then one of another class", func(w *scenario) {
			w.claim("c2", "1Gi", none, nil)
			w.volume("classy", "2Gi", "manual", nil)
		}},
		{"a claim of that class, which is no object", func(w *scenario) {
			w.claim("c3", "1Gi", ptr.To("manual"), nil)
		}},
		{"another one", func(w *scenario) { w.claim("c4", "1Gi", ptr.To("manual"), nil) }},
		{"the first claim goes", func(w *scenario) { w.remove([]string{"c1"}, nil) }},
		{"the claim of the class goes, whose volume is to be deleted", func(w *scenario) {
			w.patchVolume("classy", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
			w.remove([]string{"c3"}, nil)
		}},
		{"one to recycle", func(w *scenario) {
			w.volume("again", "1Gi", "manual", func(v *corev1.PersistentVolume) {
				v.Spec.NFS, v.Spec.Local = nil, &corev1.LocalVolumeSource{Path: "/x"}
				v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{
					Required: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{
							{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Exists"}}}}}}
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
			})
		}},
		{"its claim goes", func(w *scenario) { w.remove([]string{"c4"}, nil) }},
		{"the released volume is given back", func(w *scenario) { w.patchVolume("v1", `{"spec":{"claimRef":null}}`) }},
		{"all go", func(w *scenario) { w.remove([]string{"c2"}, []string{"small", "v1", "classy", "again"}) }},
		{"a volume that names a claim", func(w *scenario) { w.volume("meant", "5Gi", "", meant("c5")) }},
		{"a claim that another one fits better", func(w *scenario) {
			w.volume("free", "1Gi", "", nil)
			w.available("free")
			w.claim("c6", "1Gi", none, nil)
		}},
		{"the claim that is named", func(w *scenario) { w.claim("c5", "1Gi", none, nil) }},
		{"it goes", func(w *scenario) { w.remove([]string{"c5"}, nil) }},
		{"a claim that names a volume that is not", func(w *scenario) { w.claim("c7", "1Gi", none, naming("late")) }},
		{"the volume comes too small", func(w *scenario) { w.volume("late", "1Mi", "", nil) }},
		{"a claim that names a volume of another", func(w *scenario) { w.claim("c8", "1Gi", none, naming("free")) }},
		{"claims that name volumes of another class, mode and access", func(w *scenario) {
			w.volume("other", "1Gi", "manual", nil)
			w.claim("c9", "1Gi", none, naming("other"))
			w.claim("c10", "1Gi", ptr.To("manual"), func(c *corev1.PersistentVolumeClaim) {
				naming("other")(c)
				c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
			})
			w.claim("c11", "1Gi", ptr.To("manual"), func(c *corev1.PersistentVolumeClaim) {
				naming("other")(c)
				c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteMany)
			})
		}},
		{"the volume of a bound claim goes", func(w *scenario) { w.remove(nil, []string{"free"}) }},
		{"and comes again", func(w *scenario) { w.volume("free", "1Gi", "", nil) }},
		{"all go again", func(w *scenario) {
			w.remove([]string{"c6", "c7", "c8", "c9", "c10", "c11"}, []string{"meant", "free", "late", "other"})
		}},
		{"a class with a provisioner", func(w *scenario) {
			w.class("dynamic", "example.com/p", storagev1.VolumeBindingImmediate, false)
			w.claim("c12", "1Gi", ptr.To("dynamic"), nil)
		}},
		{"a class without one", func(w *scenario) {
			w.class("manual", "kubernetes.io/no-provisioner", storagev1.VolumeBindingImmediate, false)
			w.claim("c13", "1Gi", ptr.To("manual"), nil)
		}},
		{"provisioned", func(w *scenario) {
			c, err := w.claims.Get(w.t.Context(), ns, "c12")
			if err != nil {
				w.t.Fatal(err)
			}
			w.volume("pvc-12", "1Gi", "dynamic", func(v *corev1.PersistentVolume) {
				v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "example.com/p"}
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "c12", UID: c.UID}
			})
		}},
		{"its claim goes, too", func(w *scenario) { w.remove([]string{"c12"}, nil) }},
		{"provisioned in vain, as the claim has another", func(w *scenario) {
			w.volume("v14", "1Gi", "dynamic", nil)
			w.available("v14")
			w.claim("c14", "1Gi", ptr.To("dynamic"), nil)
			controllertest.Eventually(w.t, "c14 bound", func() string {
				c, err := w.claims.Get(w.t.Context(), ns, "c14")
				if err != nil || c.Status.Phase != corev1.ClaimBound {
					return fmt.Sprint(c.Status.Phase, err)
				}
				w.volume("pvc-14", "1Gi", "dynamic", func(v *corev1.PersistentVolume) {
					v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "example.com/p"}
					v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
					v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "c14", UID: c.UID}
				})
				w.volume("user-14", "1Gi", "dynamic", func(v *corev1.PersistentVolume) {
					v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "c14", UID: c.UID}
				})
				w.volume("mark-14", "1Gi", "dynamic", func(v *corev1.PersistentVolume) {
					v.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
					v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "c14", UID: c.UID}
				})
				return ""
			})
		}},
		{"the first consumer is waited for", func(w *scenario) {
			w.class("lazy", "example.com/p", storagev1.VolumeBindingWaitForFirstConsumer, false)
			w.volume("v15", "1Gi", "lazy", nil)
			w.claim("c15", "1Gi", ptr.To("lazy"), nil)
		}},
		{"a pod waits for a node", func(w *scenario) { w.pod("p15", "c15") }},
		{"two wait", func(w *scenario) { w.pod("p16", "c15") }},
		{"a node is selected", func(w *scenario) {
			w.patchClaim("c15", `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n"}}}`)
			w.claim("c16", "1Gi", ptr.To("lazy"), nil)
		}},
		{"a volume names the claim that waits", func(w *scenario) { w.volume("v16", "1Gi", "lazy", meant("c16")) }},
		{"a default class comes late", func(w *scenario) {
			w.claim("c17", "1Gi", nil, nil)
			w.claim("c18", "1Gi", none, nil)
			w.class("std", "example.com/p", storagev1.VolumeBindingImmediate, true)
		}},
		{"deleted by a plug-in that is none", func(w *scenario) {
			w.volume("gone", "1Gi", "x", func(v *corev1.PersistentVolume) {
				v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "kubernetes.io/old"}
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
				v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ns, Name: "none", UID: "u"}
			})
		}},
	}
}
