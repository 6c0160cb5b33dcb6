package node

import (
	"path"

	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// named is the graph as the follow.Handler of a resource whose objects name the node that they are about.
type named struct {
	g          *graph
	resource   string
	namespaced bool
	node       func(runtime.Object) string
}

// object is what a key in storage is of.
func (h named) object(key string) object {
	o := object{resource: h.resource, name: path.Base(key)}
	if h.namespaced {
		o.namespace = path.Base(path.Dir(key))
	}
	return o
}

// attachedTo is the node that a VolumeAttachment attaches to.
func attachedTo(obj runtime.Object) string {
	if a, ok := obj.(*storagev1.VolumeAttachment); ok {
		return a.Spec.NodeName
	}
	return ""
}

// devicesOf is the node whose devices a ResourceSlice lists, "" if several nodes reach them.
func devicesOf(obj runtime.Object) string {
	if s, ok := obj.(*resourcev1.ResourceSlice); ok && s.Spec.NodeName != nil {
		return *s.Spec.NodeName
	}
	return ""
}

// requestedBy is the node that asked for a certificate of a pod on it.
func requestedBy(obj runtime.Object) string {
	if r, ok := obj.(*certificatesv1.PodCertificateRequest); ok {
		return string(r.Spec.NodeName)
	}
	return ""
}

// Put implements follow.Handler.
func (h named) Put(key string, obj runtime.Object) {
	o, node := h.object(key), h.node(obj)
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.g.named[o] == node {
		return
	}
	if node == "" {
		delete(h.g.named, o)
		return
	}
	h.g.named[o] = node
	h.g.tellLocked()
}

// Delete implements follow.Handler.
func (h named) Delete(key string) {
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	delete(h.g.named, h.object(key))
}
