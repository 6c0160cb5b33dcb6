package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// file is one file of a volume: its content and permissions; uid is its owner if not root.
type file struct {
	data []byte
	mode int32
	uid  *int64
}

// projection is one source of files: exactly one of the four is set. mode is what files get that do not say; nil is 0644.
type projection struct {
	configMap *corev1.ConfigMapProjection
	secret    *corev1.SecretProjection
	fields    []corev1.DownwardAPIVolumeFile
	token     *corev1.ServiceAccountTokenProjection
	mode      *int32
}

func asConfigMap(s *corev1.ConfigMapVolumeSource) *corev1.ConfigMapProjection {
	return &corev1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference, Items: s.Items, Optional: s.Optional}
}

func asSecret(s *corev1.SecretVolumeSource) *corev1.SecretProjection {
	return &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.SecretName}, Items: s.Items, Optional: s.Optional}
}

func asProjections(v *corev1.ProjectedVolumeSource) ([]projection, error) {
	var out []projection
	for _, s := range v.Sources {
		p := projection{configMap: s.ConfigMap, secret: s.Secret, token: s.ServiceAccountToken, mode: v.DefaultMode}
		if s.DownwardAPI != nil {
			p.fields = s.DownwardAPI.Items
		} else if s.ConfigMap == nil && s.Secret == nil && s.ServiceAccountToken == nil {
			return nil, errors.New("the projected source is of no supported type")
		}
		out = append(out, p)
	}
	return out, nil
}

// collect computes the files of a volume, by path. Later sources win over earlier ones.
func (m *Manager) collect(ctx context.Context, w *pass, parts []projection) (map[string]file, error) {
	pod, files := w.pod, map[string]file{}
	var errs []error
	for _, p := range parts {
		mode := int32(0o644)
		if p.mode != nil {
			mode = *p.mode
		}
		var err error
		switch {
		case p.configMap != nil:
			err = m.configMapFiles(ctx, pod.Namespace, p.configMap, mode, files)
		case p.secret != nil:
			err = m.secretFiles(ctx, pod.Namespace, p.secret, mode, files)
		case p.token != nil:
			err = m.tokenFile(ctx, w, p.token, mode, files)
		default:
			err = m.fieldFiles(pod, p.fields, mode, files)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return files, errors.Join(errs...)
}

func (m *Manager) configMapFiles(ctx context.Context, ns string, s *corev1.ConfigMapProjection, mode int32, files map[string]file) error {
	optional := s.Optional != nil && *s.Optional
	cm, err := m.cfg.Objects.ConfigMap(ctx, ns, s.Name)
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	data := make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return pick(data, s.Items, optional, "config", mode, files)
}

func (m *Manager) secretFiles(ctx context.Context, ns string, s *corev1.SecretProjection, mode int32, files map[string]file) error {
	optional := s.Optional != nil && *s.Optional
	secret, err := m.cfg.Objects.Secret(ctx, ns, s.Name)
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return pick(secret.Data, s.Items, optional, "secret", mode, files)
}

// pick adds all keys as files of their name, or the chosen items under their paths.
func pick(data map[string][]byte, items []corev1.KeyToPath, optional bool, what string, mode int32, files map[string]file) error {
	if len(items) == 0 {
		for k, v := range data {
			files[k] = file{data: v, mode: mode}
		}
		return nil
	}
	for _, it := range items {
		v, ok := data[it.Key]
		if !ok {
			if optional {
				continue
			}
			return fmt.Errorf("references non-existent %s key: %s", what, it.Key)
		}
		f := file{data: v, mode: mode}
		if it.Mode != nil {
			f.mode = *it.Mode
		}
		files[it.Path] = f
	}
	return nil
}

func (m *Manager) fieldFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode int32, files map[string]file) error {
	var errs []error
	for _, it := range items {
		var value string
		var err error
		switch {
		case it.FieldRef != nil:
			value, err = m.cfg.Field(pod, it.FieldRef.FieldPath)
		case it.ResourceFieldRef != nil:
			value, err = m.cfg.Resource(pod, it.ResourceFieldRef.ContainerName, it.ResourceFieldRef)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f := file{data: []byte(value), mode: mode}
		if it.Mode != nil {
			f.mode = *it.Mode
		}
		files[it.Path] = f
	}
	return errors.Join(errs...)
}

// tokenFile adds a service-account token. Where the pod runs as a user or group of its own, only those may read it.
func (m *Manager) tokenFile(ctx context.Context, w *pass, s *corev1.ServiceAccountTokenProjection, mode int32, files map[string]file) error {
	token, err := m.tokens.get(ctx, w.pod, s, w.renew)
	if err != nil {
		return err
	}
	uid := commonUser(w.pod)
	if uid != nil || ownerOf(w.pod).group != nil {
		mode = 0o600
	}
	files[s.Path] = file{data: []byte(token), mode: mode, uid: uid}
	return nil
}
