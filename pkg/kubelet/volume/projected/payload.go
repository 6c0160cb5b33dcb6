package projected

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/kubelet/volume"
)

// file is one file of a volume: its content and permissions; uid is its owner if not root.
type file struct {
	data []byte
	mode int32
	uid  *int64
}

// projection is one source of files: exactly one of the six is set. mode is what files get that do not say; nil is
// 0644. index is the source's place in its volume.
type projection struct {
	configMap   *corev1.ConfigMapProjection
	secret      *corev1.SecretProjection
	fields      []corev1.DownwardAPIVolumeFile
	token       *corev1.ServiceAccountTokenProjection
	trust       *corev1.ClusterTrustBundleProjection
	certificate *corev1.PodCertificateProjection
	mode        *int32
	index       int
}

func configMapParts(v *corev1.Volume) ([]projection, error) {
	s := v.ConfigMap
	if s == nil {
		return nil, nil
	}
	return []projection{{configMap: &corev1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference,
		Items: s.Items, Optional: s.Optional}, mode: s.DefaultMode}}, nil
}

func secretParts(v *corev1.Volume) ([]projection, error) {
	s := v.Secret
	if s == nil {
		return nil, nil
	}
	from := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s.SecretName},
		Items: s.Items, Optional: s.Optional}
	return []projection{{secret: from, mode: s.DefaultMode}}, nil
}

func downwardParts(v *corev1.Volume) ([]projection, error) {
	if v.DownwardAPI == nil {
		return nil, nil
	}
	return []projection{{fields: v.DownwardAPI.Items, mode: v.DownwardAPI.DefaultMode}}, nil
}

func projectedParts(v *corev1.Volume) ([]projection, error) {
	if v.Projected == nil {
		return nil, nil
	}
	out := []projection{}
	for i, s := range v.Projected.Sources {
		p := projection{configMap: s.ConfigMap, secret: s.Secret, token: s.ServiceAccountToken,
			trust: s.ClusterTrustBundle, certificate: s.PodCertificate, mode: v.Projected.DefaultMode, index: i}
		if s.DownwardAPI != nil {
			p.fields = s.DownwardAPI.Items
		} else if s.ConfigMap == nil && s.Secret == nil && s.ServiceAccountToken == nil &&
			s.ClusterTrustBundle == nil && s.PodCertificate == nil {
			return nil, errors.New("the projected source is of no supported type")
		}
		out = append(out, p)
	}
	return out, nil
}

// collect computes the files of a volume, by path. Later sources win over earlier ones.
//
// All sources are tried, so that users see every mistake at once. With an error nothing is published: a volume is whole
// or not there.
func (c *content) collect(ctx context.Context, r volume.Request, parts []projection) (map[string]file, error) {
	pod, files := r.Pod, map[string]file{}
	var errs []error
	for _, p := range parts {
		mode := int32(0o644)
		if p.mode != nil {
			mode = *p.mode
		}
		var err error
		switch {
		case p.configMap != nil:
			err = c.configMapFiles(ctx, pod.Namespace, p.configMap, mode, files)
		case p.secret != nil:
			err = c.secretFiles(ctx, pod.Namespace, p.secret, mode, files)
		case p.token != nil:
			err = c.tokenFile(ctx, r, p.token, mode, files)
		case p.trust != nil:
			err = c.trustFile(ctx, p.trust, mode, files)
		case p.certificate != nil:
			err = c.certificateFiles(ctx, r, p, mode, files)
		default:
			err = c.fieldFiles(pod, p.fields, mode, files)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return files, errors.Join(errs...)
}

// configMapFiles adds the files of a config map. An optional source that does not exist has no files. Any other error
// of the read counts, so that files do not disappear while the API server is away.
func (c *content) configMapFiles(ctx context.Context, ns string, s *corev1.ConfigMapProjection, mode int32,
	files map[string]file) error {
	optional := s.Optional != nil && *s.Optional
	cm, err := c.cfg.Objects.ConfigMap(ctx, ns, s.Name)
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

func (c *content) secretFiles(ctx context.Context, ns string, s *corev1.SecretProjection, mode int32,
	files map[string]file) error {
	optional := s.Optional != nil && *s.Optional
	secret, err := c.cfg.Objects.Secret(ctx, ns, s.Name)
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	return pick(secret.Data, s.Items, optional, "secret", mode, files)
}

// pick adds all keys as files of their name, or the chosen items under their paths.
//
// A missing key is an error unless the source is optional: an application must not start with half of its settings. It
// shares the data with the object it read, and does not change it.
func pick(data map[string][]byte, items []corev1.KeyToPath, optional bool, what string, mode int32,
	files map[string]file) error {
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

func (c *content) fieldFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode int32,
	files map[string]file) error {
	var errs []error
	for _, it := range items {
		var value string
		var err error
		switch {
		case it.FieldRef != nil:
			value, err = c.cfg.Field(pod, it.FieldRef.FieldPath)
		case it.ResourceFieldRef != nil:
			value, err = c.cfg.Resource(pod, it.ResourceFieldRef.ContainerName, it.ResourceFieldRef)
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

// tokenFile adds a service-account token.
func (c *content) tokenFile(ctx context.Context, r volume.Request, s *corev1.ServiceAccountTokenProjection, mode int32,
	files map[string]file) error {
	token, err := c.tokens.get(ctx, r.Pod, s, r.Renew)
	if err != nil {
		return err
	}
	files[s.Path] = ownFile(r.Pod, []byte(token), mode)
	return nil
}

// certificateFiles adds a key and its certificates, in one file or in two.
func (c *content) certificateFiles(ctx context.Context, r volume.Request, p projection, mode int32,
	files map[string]file) error {
	key, chain, err := c.cfg.Certificates.Get(ctx, r.Pod, r.Volume.Name, p.index, p.certificate, r.Renew)
	if err != nil {
		return err
	}
	for path, data := range map[string][]byte{
		p.certificate.CredentialBundlePath: slices.Concat(key, chain),
		p.certificate.KeyPath:              key,
		p.certificate.CertificateChainPath: chain,
	} {
		if path != "" {
			files[path] = ownFile(r.Pod, data, mode)
		}
	}
	return nil
}

// ownFile is a file that is the pod's alone, a secret of its own. Where the pod runs as a user or group of its own,
// only those may read it.
//
// Mode 0600 with a group that volume.Owner applies lets that group read it as well.
func ownFile(pod *corev1.Pod, data []byte, mode int32) file {
	uid := commonUser(pod)
	if uid != nil || volume.OwnerOf(pod).Group != nil {
		mode = 0o600
	}
	return file{data: data, mode: mode, uid: uid}
}
