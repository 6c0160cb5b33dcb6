package trace

import (
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
	if !strings.Contains(gv.Group, ".") || strings.HasSuffix(gv.Group, ".k8s.io") {
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

// attributes are those of every span of the object, with room for more of them.
func (o *Object) attributes(more int) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, 15+more)
	out = append(out, objectGroup.String(o.Group), objectResource.String(o.Resource), objectKind.String(o.Kind),
		objectName.String(o.Name), objectUID.String(string(o.UID)))
	if o.Namespace != "" {
		out = append(out, objectNamespace.String(o.Namespace), semconv.K8SNamespaceName(o.Namespace))
	}
	if c := o.Owner; c.UID != "" {
		out = append(out, ownerGroup.String(c.Group), ownerKind.String(c.Kind), ownerName.String(c.Name),
			ownerUID.String(string(c.UID)))
		if c.Resource != "" {
			out = append(out, ownerResource.String(c.Resource))
		}
	}
	if o.Group == "" && o.Kind == "Pod" {
		out = append(out, semconv.K8SPodName(o.Name), semconv.K8SPodUID(string(o.UID)))
	} else if name := conventional(o.Group, o.Kind); name != "" {
		out = append(out, attribute.String("k8s."+name+".name", o.Name),
			attribute.String("k8s."+name+".uid", string(o.UID)))
	}
	if o.Node != "" {
		out = append(out, semconv.K8SNodeName(o.Node))
	}
	return out
}
