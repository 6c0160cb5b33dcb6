package trace

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/traces"
)

// The attributes of our own. Those of an object and its owner are written by all components alike, and bonsai-traces
// finds traces by them.
const (
	relationKey = attribute.Key("bonsai.link.relation")

	objectGroup     = attribute.Key("bonsai.object.group")
	objectResource  = attribute.Key("bonsai.object.resource")
	objectKind      = attribute.Key("bonsai.object.kind")
	objectNamespace = attribute.Key("bonsai.object.namespace")
	objectName      = attribute.Key("bonsai.object.name")
	objectUID       = attribute.Key("bonsai.object.uid")

	ownerGroup    = attribute.Key("bonsai.owner.group")
	ownerResource = attribute.Key("bonsai.owner.resource")
	ownerKind     = attribute.Key("bonsai.owner.kind")
	ownerName     = attribute.Key("bonsai.owner.name")
	ownerUID      = attribute.Key("bonsai.owner.uid")
)

// Object is what a span is about.
type Object struct {
	traces.Object
	// Created is the object's creationTimestamp.
	Created time.Time
	// Owner is the object's controller; without a UID it has none.
	Owner traces.Object
	// Node is where a pod runs, "" if that is not known.
	Node string
}

// About describes an object of a kind and a resource.
func About(kind schema.GroupVersionKind, resource string, obj metav1.Object) Object {
	o := Object{Created: obj.GetCreationTimestamp().Time, Object: traces.Object{Group: kind.Group, Resource: resource,
		Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}}
	if c := metav1.GetControllerOfNoCopy(obj); c != nil {
		o.Owner = owner(c)
	}
	return o
}

// Pod describes a pod.
func Pod(pod *corev1.Pod) Object {
	o := About(corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod)
	o.Node = pod.Spec.NodeName
	return o
}

// owner describes an object's controller. The reference has no resource. Of Kubernetes' own kinds it follows from the
// kind; of others only the API server would know it.
func owner(c *metav1.OwnerReference) traces.Object {
	o := traces.Object{Kind: c.Kind, Name: c.Name, UID: c.UID}
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	if err != nil {
		return o
	}
	o.Group = gv.Group
	switch {
	case c.Kind == "ReplicaSet" && gv.Group == "apps": // of most pods, and the guess is slow
		o.Resource = "replicasets"
	case !strings.Contains(gv.Group, ".") || strings.HasSuffix(gv.Group, ".k8s.io"):
		plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(c.Kind))
		o.Resource = plural.Resource
	}
	return o
}

// conventional is the name that the semantic conventions have for a kind, "" if they have none. Attributes are
// "k8s.<name>.name" and "k8s.<name>.uid".
func conventional(group, kind string) string {
	switch (schema.GroupKind{Group: group, Kind: kind}) {
	case schema.GroupKind{Kind: "Node"}, schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "ResourceQuota"},
		schema.GroupKind{Kind: "ReplicationController"}, schema.GroupKind{Group: "apps", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "batch", Kind: "Job"},
		schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return strings.ToLower(kind)
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:
		return "hpa"
	}
	return ""
}

// append appends the attributes of every span of the object, and returns how many there are. Those that more has, too,
// are left to it.
func (o *Object) append(b []byte, more []attribute.KeyValue) (_ []byte, n int) {
	add := func(key attribute.Key, value string) {
		if !slices.ContainsFunc(more, func(a attribute.KeyValue) bool { return a.Key == key }) {
			b, n = appendWord(b, spanAttributes, string(key), value), n+1
		}
	}
	add(objectGroup, o.Group)
	add(objectResource, o.Resource)
	add(objectKind, o.Kind)
	add(objectName, o.Name)
	add(objectUID, string(o.UID))
	if o.Namespace != "" {
		add(objectNamespace, o.Namespace)
		add(semconv.K8SNamespaceNameKey, o.Namespace)
	}
	if c := &o.Owner; c.UID != "" {
		add(ownerGroup, c.Group)
		add(ownerKind, c.Kind)
		add(ownerName, c.Name)
		add(ownerUID, string(c.UID))
		if c.Resource != "" {
			add(ownerResource, c.Resource)
		}
	}
	if o.Group == "" && o.Kind == "Pod" {
		add(semconv.K8SPodNameKey, o.Name)
		add(semconv.K8SPodUIDKey, string(o.UID))
	} else if name := conventional(o.Group, o.Kind); name != "" {
		add(attribute.Key("k8s."+name+".name"), o.Name)
		add(attribute.Key("k8s."+name+".uid"), string(o.UID))
	}
	if o.Node != "" {
		add(semconv.K8SNodeNameKey, o.Node)
	}
	return b, n
}
