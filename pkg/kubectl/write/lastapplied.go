package write

import (
	"bytes"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/resource"
)

// LastAppliedAnnotation is where client-side apply keeps the configuration it applied last, as JSON.
const LastAppliedAnnotation = corev1.LastAppliedConfigAnnotation

// LastApplied returns the configuration kept in obj, nil if there is none.
func LastApplied(obj runtime.Object) ([]byte, error) {
	a, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	v, ok := a.GetAnnotations()[LastAppliedAnnotation]
	if !ok {
		return nil, nil
	}
	return []byte(v), nil
}

// Configuration encodes obj as kept in the annotation: without the annotation itself, with a newline at the end
// and with annotations even if they are empty.
func Configuration(obj runtime.Object) ([]byte, error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	a, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if m, ok := content["metadata"].(map[string]any); ok {
		annotations := map[string]string{}
		maps.Copy(annotations, a.GetAnnotations())
		delete(annotations, LastAppliedAnnotation)
		m = maps.Clone(m)
		m["annotations"] = annotations
		content = maps.Clone(content)
		content["metadata"] = m
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(content); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// contentOf is obj as JSON has it. That of an unstructured object is its own, to be read only.
func contentOf(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	data, err := resource.Encode(obj)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return content, d.Decode(&content)
}

// SetLastApplied keeps obj's configuration in its annotation.
func SetLastApplied(obj runtime.Object) error {
	data, err := Configuration(obj)
	if err != nil {
		return err
	}
	a, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	annotations := maps.Clone(a.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[LastAppliedAnnotation] = string(data)
	a.SetAnnotations(annotations)
	return nil
}

// Want is what applying u, an object of a file, asks for: u with its configuration in the annotation.
func Want(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u = u.DeepCopy()
	return u, SetLastApplied(u)
}

// UpdateLastApplied does so if obj keeps one already, or always with --save-config.
func (f *Flags) UpdateLastApplied(obj runtime.Object) error {
	if kept, err := LastApplied(obj); err != nil || kept == nil && !f.SaveConfig {
		return err
	}
	return SetLastApplied(obj)
}
