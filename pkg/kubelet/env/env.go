// Package env builds the environment of a container: the variables of its spec, those it takes from ConfigMaps,
// Secrets, files of its volumes and fields of its pod, and those that describe the Services of its namespace. It also
// expands $(VAR) in values, commands and arguments. All of it is pure except for the reading of ConfigMaps, Secrets and
// files, which the caller's Sources do.
//
// The rules: https://kubernetes.io/docs/tasks/inject-data-application/ and
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
package env

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Var is one variable of a container's environment.
type Var struct{ Name, Value string }

// Sources reads the objects that variables come from. A missing object is an error for which apierrors.IsNotFound
// holds.
type Sources interface {
	// ConfigMap returns the ConfigMap; the caller does not change it.
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	// Secret returns the Secret; the caller does not change it.
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// File returns the content of a file in one of the pod's volumes; a missing file is fs.ErrNotExist.
	File(volume, path string) ([]byte, error)
}

// Input is what the environment of one container depends on.
type Input struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	// PodIPs and HostIPs are the addresses as the kubelet knows them now, the primary one first; the pod's status may
	// lag.
	PodIPs, HostIPs []string
	// Allocatable stands in for the limits a container does not set, in resourceFieldRef.
	Allocatable corev1.ResourceList
	// Services are those of the pod's namespace and the Service "kubernetes" of the namespace "default"; others are
	// ignored.
	Services []*corev1.Service
}

// Build returns the container's environment: envFrom, then env in the order of the spec, then the Services' variables
// by name. A name appears once; env wins over envFrom and both over Services. An error is what the pod's status shows
// as the message of CreateContainerConfigError.
//
// The result may hold secrets.
func Build(ctx context.Context, in Input, src Sources) ([]Var, error) {
	b := &builder{in: in, src: src, index: map[string]int{}, services: serviceVars(in)}
	for i := range in.Container.EnvFrom {
		if err := b.from(ctx, &in.Container.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	for i := range in.Container.Env {
		if err := b.variable(ctx, &in.Container.Env[i]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.services)) {
		if _, ok := b.index[name]; !ok {
			b.set(name, b.services[name])
		}
	}
	return b.vars, nil
}

// builder collects the variables of one container.
type builder struct {
	in       Input
	src      Sources
	vars     []Var
	index    map[string]int // of vars by name
	services map[string]string
}

func (b *builder) set(name, value string) {
	if i, ok := b.index[name]; ok {
		b.vars[i].Value = value
		return
	}
	b.index[name] = len(b.vars)
	b.vars = append(b.vars, Var{Name: name, Value: value})
}

// lookup finds what $(name) stands for in a value: what was set so far, then the Services' variables.
//
// The order of the spec decides what a value may refer to, as the API documents.
func (b *builder) lookup(name string) (string, bool) {
	if i, ok := b.index[name]; ok {
		return b.vars[i].Value, true
	}
	v, ok := b.services[name]
	return v, ok
}

// from adds all keys of a ConfigMap or Secret. Keys that cannot name a variable are left out.
func (b *builder) from(ctx context.Context, f *corev1.EnvFromSource) error {
	data := map[string]string{}
	switch {
	case f.ConfigMapRef != nil:
		cm, err := b.src.ConfigMap(ctx, b.in.Pod.Namespace, f.ConfigMapRef.Name)
		if err != nil {
			return unlessOptional(err, f.ConfigMapRef.Optional)
		}
		maps.Copy(data, cm.Data)
	case f.SecretRef != nil:
		s, err := b.src.Secret(ctx, b.in.Pod.Namespace, f.SecretRef.Name)
		if err != nil {
			return unlessOptional(err, f.SecretRef.Optional)
		}
		for k, v := range s.Data {
			data[k] = string(v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(data)) {
		name := f.Prefix + k
		if len(validation.IsRelaxedEnvVarName(name)) == 0 {
			b.set(name, data[k])
		}
	}
	return nil
}

func (b *builder) variable(ctx context.Context, e *corev1.EnvVar) error {
	if e.ValueFrom == nil || e.Value != "" {
		b.set(e.Name, expand(e.Value, b.lookup))
		return nil
	}
	value, ok, err := b.valueFrom(ctx, e.ValueFrom)
	if err != nil {
		return err
	}
	if ok {
		b.set(e.Name, value)
	}
	return nil
}

// valueFrom resolves a reference; ok is false for an optional one whose object or key is missing.
func (b *builder) valueFrom(ctx context.Context, s *corev1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case s.FieldRef != nil:
		value, err = b.field(s.FieldRef.FieldPath)
		return value, err == nil, err
	case s.ResourceFieldRef != nil:
		if n := s.ResourceFieldRef.ContainerName; n != "" {
			value, err = ResourceOf(b.in.Pod, n, s.ResourceFieldRef, b.in.Allocatable)
		} else {
			value, err = resourceValue(b.in.Container, s.ResourceFieldRef, b.in.Allocatable)
		}
		return value, err == nil, err
	case s.ConfigMapKeyRef != nil:
		return b.configMapKey(ctx, s.ConfigMapKeyRef)
	case s.SecretKeyRef != nil:
		return b.secretKey(ctx, s.SecretKeyRef)
	case s.FileKeyRef != nil:
		return b.fileKey(s.FileKeyRef)
	}
	return "", false, fmt.Errorf("the variable's source is of no known type")
}

func (b *builder) configMapKey(ctx context.Context, ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	ns := b.in.Pod.Namespace
	cm, err := b.src.ConfigMap(ctx, ns, ref.Name)
	if err != nil {
		return "", false, unlessOptional(err, ref.Optional)
	}
	if v, ok := cm.Data[ref.Key]; ok {
		return v, true, nil
	}
	if ref.Optional != nil && *ref.Optional {
		return "", false, nil
	}
	return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, ns, ref.Name)
}

func (b *builder) secretKey(ctx context.Context, ref *corev1.SecretKeySelector) (string, bool, error) {
	ns := b.in.Pod.Namespace
	s, err := b.src.Secret(ctx, ns, ref.Name)
	if err != nil {
		return "", false, unlessOptional(err, ref.Optional)
	}
	if v, ok := s.Data[ref.Key]; ok {
		return string(v), true, nil
	}
	if ref.Optional != nil && *ref.Optional {
		return "", false, nil
	}
	return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, ns, ref.Name)
}

// unlessOptional drops err if it says that an optional object does not exist.
func unlessOptional(err error, optional *bool) error {
	if optional != nil && *optional && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
