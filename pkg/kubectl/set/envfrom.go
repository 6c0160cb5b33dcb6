package set

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/resource"
)

// imported returns the variables of --from: one for each key of the config map or secret, as a reference to it, so that
// no secret is copied into the pod's template.
func (o *env) imported(ctx context.Context) ([]corev1.EnvVar, error) {
	if o.from == "" {
		return nil, nil
	}
	infos, err := o.Client.Resolve(ctx, resource.Request{Args: []string{o.from}, Namespace: o.Namespace, Latest: true})
	if err != nil {
		return nil, err
	}
	var out []corev1.EnvVar
	for _, i := range infos {
		data, _, _ := unstructured.NestedMap(i.Object.Object, "data")
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if len(o.keys) > 0 && !slices.Contains(o.keys, key) {
				continue
			}
			v, err := reference(i, key)
			if err != nil {
				return nil, err
			}
			if v.Name != key {
				fmt.Fprintf(o.ErrOut, "Warning: key %s transferred to %s\n", key, v.Name)
			}
			v.Name = o.prefix + v.Name
			out = append(out, v)
		}
	}
	return out, nil
}

// reference returns the variable that takes its value from a key. Its name is the key in upper case, with underscores
// for characters that names cannot have.
func reference(i *resource.Info, key string) (corev1.EnvVar, error) {
	v := corev1.EnvVar{Name: envName(key), ValueFrom: &corev1.EnvVarSource{}}
	local := corev1.LocalObjectReference{Name: i.Name}
	switch i.Object.GetKind() {
	case "ConfigMap":
		v.ValueFrom.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: local, Key: key}
	case "Secret":
		v.ValueFrom.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: local, Key: key}
	default:
		return v, fmt.Errorf("unsupported resource specified in --from")
	}
	return v, nil
}

// envName returns the name of a variable for a key.
func envName(key string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key))
}

// show serves --list: it prints the environment as it would be with vars, and changes nothing.
func (o *env) show(ctx context.Context, vars []corev1.EnvVar) error {
	infos, err := o.find(ctx)
	return resource.Each(infos, err, func(i *resource.Info) error {
		chosen, err := o.changeAll(i, i.Object.DeepCopy(), vars)
		if err != nil {
			return err
		}
		for _, c := range chosen {
			fmt.Fprintf(o.Out, "# %s %s, container %s\n", i.Object.GetKind(), i.Name, c["name"])
			if err := o.showContainer(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (o *env) showContainer(ctx context.Context, c map[string]any) error {
	data, err := json.Marshal(c["env"])
	if err != nil {
		return err
	}
	var vars []corev1.EnvVar
	if err := json.Unmarshal(data, &vars); err != nil {
		return fmt.Errorf("decode the environment: %w", err)
	}
	for _, v := range vars {
		switch {
		case v.ValueFrom == nil:
			fmt.Fprintf(o.Out, "%s=%s\n", v.Name, v.Value)
		case o.resolve:
			value, err := o.value(ctx, v)
			if err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "%s=%s\n", v.Name, value)
		default:
			fmt.Fprintf(o.Out, "# %s from %s\n", v.Name, describeSource(v.ValueFrom))
		}
	}
	return nil
}

// value reads the value of a reference (--resolve), decoded. Fields and resources of a pod have no value before it
// runs.
func (o *env) value(ctx context.Context, v corev1.EnvVar) (string, error) {
	kind, name, key := "", "", ""
	switch s := v.ValueFrom; {
	case s.ConfigMapKeyRef != nil:
		kind, name, key = "ConfigMap", s.ConfigMapKeyRef.Name, s.ConfigMapKeyRef.Key
	case s.SecretKeyRef != nil:
		kind, name, key = "Secret", s.SecretKeyRef.Name, s.SecretKeyRef.Key
	default:
		return "", fmt.Errorf("%s: only references to config maps and secrets can be resolved here", v.Name)
	}
	m, err := o.Client.MappingFor(corev1.SchemeGroupVersion.WithKind(kind))
	if err != nil {
		return "", err
	}
	u, err := o.Client.Get(ctx, m, o.Namespace, name)
	if err != nil {
		return "", err
	}
	value, found, _ := unstructured.NestedString(u.Object, "data", key)
	if !found {
		return "", fmt.Errorf("key %s not found in %s %s", key, strings.ToLower(kind), name)
	}
	if kind == "Secret" {
		data, err := base64.StdEncoding.DecodeString(value)
		return string(data), err
	}
	return value, nil
}

// describeSource returns a reference in words, for a comment line.
func describeSource(s *corev1.EnvVarSource) string {
	switch {
	case s.FieldRef != nil:
		return "field path " + s.FieldRef.FieldPath
	case s.ConfigMapKeyRef != nil:
		return fmt.Sprintf("configmap %s, key %s", s.ConfigMapKeyRef.Name, s.ConfigMapKeyRef.Key)
	case s.SecretKeyRef != nil:
		return fmt.Sprintf("secret %s, key %s", s.SecretKeyRef.Name, s.SecretKeyRef.Key)
	case s.ResourceFieldRef != nil && s.ResourceFieldRef.ContainerName != "":
		return fmt.Sprintf("resource field %s from container %s", s.ResourceFieldRef.Resource,
			s.ResourceFieldRef.ContainerName)
	case s.ResourceFieldRef != nil:
		return "resource field " + s.ResourceFieldRef.Resource
	}
	return "invalid valueFrom"
}
