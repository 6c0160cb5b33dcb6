package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"bonsai/api/podspec"
	"bonsai/pkg/docbounds"
	"bonsai/pkg/kubelet/runtime"
)

// maxManifest bounds one manifest file.
const maxManifest = 1 << 20

// maxReason bounds, in characters, why a manifest is refused: validation may find a fault in each of its fields.
const maxReason = 1000

// manifestBounds are those of a manifest with its aliases written out.
var manifestBounds = docbounds.Bounds{Bytes: 2 * maxManifest, Values: 100_000, Depth: 300}

// parse makes a static pod of a manifest in YAML or JSON. Its name gets the node's name appended, its uid is made from
// node, file and content so that any change of the file makes another pod. It is pure except for defaults, which fills
// in the fields that the API server would, and refuses the pods that it would: their fields become paths on the node.
func parse(data []byte, file, node string, defaults func(*corev1.Pod) error) (*corev1.Pod, error) {
	if len(data) > maxManifest {
		return nil, fmt.Errorf("manifest %s is larger than %d bytes", file, maxManifest)
	}
	if err := docbounds.YAML(data, manifestBounds); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", file, err)
	}
	pod, err := decode(data, file)
	if err != nil {
		return nil, err
	}
	s := source{name: file, kind: runtime.SourceFile, node: node, hashed: append([]byte("file:"+file+"\n"), data...)}
	return s.static(pod, defaults)
}

// decode reads one pod.
func decode(data []byte, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, fmt.Errorf("manifest %s: it has %s %s, not v1 Pod", name, pod.APIVersion, pod.Kind)
	}
	return pod, nil
}

// source is where a manifest comes from.
type source struct {
	// name is for errors, kind the pod's annotation.
	name, kind, node string
	// hashed is what makes the pod another one when it changes, besides the node.
	hashed []byte
}

// static makes a static pod of one that was decoded.
func (s source) static(pod *corev1.Pod, defaults func(*corev1.Pod) error) (*corev1.Pod, error) {
	if err := checkStatic(pod); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", s.name, err)
	}
	// The kubelet says these. A manifest that said them would pass for a mirror, or for a pod that is being deleted.
	pod.Status, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = corev1.PodStatus{}, nil, nil
	delete(pod.Annotations, runtime.AnnotationConfigMirror)
	hash := sha256.Sum256(append([]byte("host:"+s.node+"\n"), s.hashed...))
	if pod.UID == "" {
		pod.UID = types.UID(hex.EncodeToString(hash[:16]))
	} else if errs := validation.IsDNS1123Label(strings.ToLower(string(pod.UID))); len(errs) > 0 {
		return nil, fmt.Errorf("manifest %s: metadata.uid %.64q: it must be at most 63 letters, digits and dashes (without it, the kubelet chooses one)",
			s.name, pod.UID)
	}
	pod.Name += "-" + strings.ToLower(s.node)
	if errs := validation.IsDNS1123Subdomain(pod.Name); len(errs) > 0 {
		return nil, fmt.Errorf("manifest %s: the pod's name with that of the node, %.64q: %s", s.name, pod.Name,
			strings.Join(errs, ", "))
	}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Generation = 1
	pod.Spec.NodeName = s.node
	annotations := map[string]string{}
	for k, v := range pod.Annotations {
		annotations[k] = v
	}
	annotations[runtime.AnnotationConfigSource] = s.kind
	annotations[runtime.AnnotationConfigHash] = hex.EncodeToString(hash[:16])
	pod.Annotations = annotations
	pod.Spec.Tolerations = append(pod.Spec.Tolerations,
		corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	if err := defaults(pod); err != nil {
		return nil, fmt.Errorf("manifest %s: %.*s", s.name, maxReason, err.Error())
	}
	pod.Status.Phase = corev1.PodPending
	return pod, nil
}

// checkStatic refuses what a static pod cannot have: it refers to no other object of the API
// (https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/).
func checkStatic(pod *corev1.Pod) error {
	if errs := validation.IsDNS1123Subdomain(pod.Name); len(errs) > 0 {
		return fmt.Errorf("metadata.name %.64q: %s", pod.Name, strings.Join(errs, ", "))
	}
	if pod.Namespace != "" {
		if errs := validation.IsDNS1123Label(pod.Namespace); len(errs) > 0 {
			return fmt.Errorf("metadata.namespace %.64q: %s", pod.Namespace, strings.Join(errs, ", "))
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return errors.New("spec.containers: at least one is required")
	}
	if len(pod.Spec.EphemeralContainers) > 0 {
		return errors.New("spec.ephemeralContainers: a static pod may not have any")
	}
	if what := podspec.StaticReference(pod); what != "" {
		return fmt.Errorf("static pods may not reference %s", what)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if errs := validation.IsDNS1123Label(list[i].Name); len(errs) > 0 {
				return fmt.Errorf("container name %.64q: %s", list[i].Name, strings.Join(errs, ", "))
			}
			if list[i].Image == "" {
				return fmt.Errorf("container %q has no image", list[i].Name)
			}
		}
	}
	return nil
}
