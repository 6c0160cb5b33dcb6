package fieldmanager

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

const benchPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-6b7f5d4c9-abcde","generateName":"web-6b7f5d4c9-","namespace":"default","uid":"u","labels":{"app":"web","pod-template-hash":"6b7f5d4c9"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6b7f5d4c9","uid":"x","controller":true,"blockOwnerDeletion":true}]},
"spec":{"containers":[{"name":"web","image":"nginx:1.27","ports":[{"containerPort":80,"protocol":"TCP"}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent","readinessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true}}`

const benchStatus = `{"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"},
{"type":"ContainersReady","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],
"hostIP":"10.0.0.1","podIP":"10.1.0.2","podIPs":[{"ip":"10.1.0.2"}],"startTime":"2026-01-02T03:04:05Z","containerStatuses":[{"name":"web","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}},"lastState":{},"ready":true,"restartCount":0,"image":"nginx:1.27","imageID":"sha256:1","containerID":"containerd://1","started":true}],"qosClass":"Burstable"}}`

func decode(b *testing.B, into *corev1.Pod, doc string) *corev1.Pod {
	b.Helper()
	if err := json.Unmarshal([]byte(doc), into); err != nil {
		b.Fatal(err)
	}
	return into
}

// BenchmarkPod measures managed fields in writes of a pod, by the fast path and by the library.
func BenchmarkPod(b *testing.B) {
	m := newManager(b)
	row := rowOf(b, "pods")
	ways := map[string]func(b *testing.B, by registry.Writer, live, obj runtime.Object) error{
		"fast": func(b *testing.B, by registry.Writer, live, obj runtime.Object) error {
			return m.updateFast(b.Context(), writeTarget{row, by.Version, by.Subresource}, by, live, obj)
		},
		"library": func(b *testing.B, by registry.Writer, live, obj runtime.Object) error {
			return m.updateByLibrary(b.Context(), writeTarget{row, by.Version, by.Subresource}, by, live, obj)
		},
	}
	created := decode(b, &corev1.Pod{}, benchPod)
	creator := registry.Writer{Name: "kube-controller-manager", Version: "v1", At: time.Now()}
	kubelet := registry.Writer{Name: "kubelet", Version: "v1", Subresource: "status", At: time.Now()}
	if err := ways["library"](b, creator, nil, created); err != nil {
		b.Fatal(err)
	}
	running := decode(b, created.DeepCopy(), benchStatus)
	if err := ways["library"](b, kubelet, created, running); err != nil {
		b.Fatal(err)
	}
	again := running.DeepCopy()
	again.Status.ContainerStatuses[0].RestartCount++
	again.Status.Conditions[1].LastTransitionTime = metav1.Now()
	labelled := running.DeepCopy()
	labelled.Labels["patched"] = "1"
	relabelled := labelled.DeepCopy()
	if err := ways["library"](b, registry.Writer{Name: "bench", Version: "v1", At: time.Now()}, running,
		relabelled); err != nil {
		b.Fatal(err)
	}
	next := relabelled.DeepCopy()
	next.Labels["patched"] = "2"
	for _, c := range []struct {
		name      string
		by        registry.Writer
		live, obj *corev1.Pod
	}{
		{"create", creator, nil, created},
		{"first status", kubelet, created, running},
		{"status", kubelet, running, again},
		{"new label", registry.Writer{Name: "bench", Version: "v1"}, running, labelled},
		{"label", registry.Writer{Name: "bench", Version: "v1"}, relabelled, next},
	} {
		var live runtime.Object
		var fields []metav1.ManagedFieldsEntry
		if c.live != nil {
			live, fields = c.live, c.live.ManagedFields
		}
		for name, way := range ways {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.obj.ManagedFields = fields
					if err := way(b, c.by, live, c.obj); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkApply measures server-side apply of a pod, by the fast path and by the library: a new pod, one that has the
// configuration, and one whose label has another value.
func BenchmarkApply(b *testing.B) {
	m := newManager(b)
	row := rowOf(b, "pods")
	by := registry.Writer{Name: "bench", Version: "v1", At: time.Now()}
	config := &unstructured.Unstructured{}
	if err := config.UnmarshalJSON([]byte(benchPod)); err != nil {
		b.Fatal(err)
	}
	unstructured.RemoveNestedField(config.Object, "metadata", "uid")
	config.SetLabels(map[string]string{"app": "web"})
	other := config.DeepCopy()
	other.SetLabels(map[string]string{"app": "other"})
	made, err := m.Apply(b.Context(), row, by, nil, config, false)
	if err != nil {
		b.Fatal(err)
	}
	running := decode(b, made.DeepCopyObject().(*corev1.Pod), benchStatus)
	if err := m.Update(b.Context(), row,
		registry.Writer{Name: "kubelet", Version: "v1", Subresource: "status", At: time.Now()}, made,
		running); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		live   *corev1.Pod
		config *unstructured.Unstructured
	}{{"new", nil, config}, {"same", running, config}, {"changed", running, other}} {
		live := func() runtime.Object {
			if c.live == nil {
				return nil
			}
			return c.live.DeepCopy()
		}
		b.Run(c.name+"/fast", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.applyFast(writeTarget{row, "v1", ""}, by, live(), c.config); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/library", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.applyByLibrary(b.Context(), writeTarget{row, "v1", ""}, by, live(), c.config,
					false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDynamic measures managed fields in writes of an object without a Go type, by the fast path and by the
// library.
func BenchmarkDynamic(b *testing.B) {
	m := newManager(b)
	row, _ := thingRow(b)
	made := thing(`,"spec":{"size":3,"on":true,"word":"w","labels":{"app":"bench","tier":"front"},"ports":[{"port":8080,"protocol":"TCP"},{"port":9090,"protocol":"TCP"}],"plain":[{"a":"1"},{"a":"2"}]}`)
	by := registry.Writer{Name: "bench", Version: "v1", At: time.Now()}
	if err := m.updateByLibrary(b.Context(), writeTarget{row, "v1", ""}, by, nil, made); err != nil {
		b.Fatal(err)
	}
	ready := made.DeepCopy()
	ready.Object["status"] = map[string]any{"ready": int64(2),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	for _, c := range []struct {
		name string
		w    writeTarget
		live runtime.Object
		obj  *unstructured.Unstructured
	}{{"create", writeTarget{row, "v1", ""}, nil, made}, {"status", writeTarget{row, "v1", "status"}, made, ready}} {
		by := by
		by.Subresource = c.w.subresource
		for name, way := range map[string]func(context.Context, writeTarget, registry.Writer, runtime.Object,
			runtime.Object) error{"fast": m.updateFast, "library": m.updateByLibrary} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					obj := c.obj.DeepCopy()
					if c.live == nil {
						obj.SetManagedFields(nil)
					}
					if err := way(b.Context(), c.w, by, c.live, obj); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
