// Package projected makes the volumes whose files come from the API: configMap, secret, downwardAPI and projected. They
// are written atomically (see atomic.go) and follow their objects while the pod runs; what may be secret is in memory.
//
// The contract with applications: https://kubernetes.io/docs/concepts/storage/projected-volumes/.
package projected

import (
	"context"
	"errors"
	"log/slog"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/volume"
)

// Objects reads what volumes are filled with. A missing object is an error for which apierrors.IsNotFound holds.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// TrustBundles returns the bundles that a source names or selects.
	TrustBundles(ctx context.Context,
		s *corev1.ClusterTrustBundleProjection) ([]*certificatesv1.ClusterTrustBundle, error)
}

// Certificates gets the key and the certificates of a podCertificate source: the one at that index of a volume.
type Certificates interface {
	Get(ctx context.Context, pod *corev1.Pod, volume string, index int, s *corev1.PodCertificateProjection,
		renew bool) (key, chain []byte, err error)
	// Forget drops those of a pod.
	Forget(pod types.UID)
}

// Tokens asks the API server for a service-account token (serviceaccounts/token).
type Tokens interface {
	CreateToken(ctx context.Context, namespace, account string, req *authv1.TokenRequest) (*authv1.TokenRequest, error)
}

// Config is what the sources need. All is required.
type Config struct {
	Objects      Objects
	Tokens       Tokens
	Certificates Certificates
	// Field returns a downward API field of the pod; Resource a request or limit of the named container.
	Field    func(pod *corev1.Pod, path string) (string, error)
	Resource func(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector) (string, error)
	// Allocatable is what all pods together may have of the node's memory, in bytes.
	Allocatable func() int64
	Now         func() time.Time
	Log         *slog.Logger
}

// content finds the files of volumes, for all the sources.
type content struct {
	cfg    Config
	tokens *tokenCache
}

// Source makes the volumes of one kind.
type Source struct {
	*content
	name string
	// memory is whether the files are on memory, as they may be secret.
	memory bool
	// parts are what a volume is made of; nil: it is of another kind.
	parts func(v *corev1.Volume) ([]projection, error)
}

var _ volume.Remover = (*Source)(nil)

// New returns the source of each kind. They share their tokens.
func New(cfg Config) ([]*Source, error) {
	if cfg.Objects == nil || cfg.Tokens == nil || cfg.Certificates == nil || cfg.Field == nil || cfg.Resource == nil ||
		cfg.Allocatable == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("projected volumes: Objects, Tokens, Certificates, Field, Resource, Allocatable, Now and " +
			"Log are required")
	}
	c := &content{cfg: cfg, tokens: newTokenCache(cfg.Tokens, cfg.Now, cfg.Log)}
	return []*Source{
		{content: c, name: "configmap", memory: false, parts: configMapParts},
		{content: c, name: "secret", memory: true, parts: secretParts},
		{content: c, name: "downward-api", memory: true, parts: downwardParts},
		{content: c, name: "projected", memory: true, parts: projectedParts},
	}, nil
}

// Name implements volume.Source.
func (s *Source) Name() string { return s.name }

// Supports implements volume.Source.
func (s *Source) Supports(spec volume.Spec) bool {
	parts, err := s.parts(spec.Volume)
	return parts != nil || err != nil
}

// Prepare implements volume.Source.
//
// It reads everything first and returns what writes it: requests may take long, and must not happen while the volume is
// half made.
func (s *Source) Prepare(ctx context.Context, r volume.Request) (volume.Publish, error) {
	parts, err := s.parts(r.Volume)
	if err != nil {
		return nil, err
	}
	files, err := s.collect(ctx, r, parts)
	if err != nil {
		return nil, err
	}
	return func() (volume.Mounted, error) {
		var on *volume.FileSystem
		if s.memory {
			on = volume.Tmpfs(volume.MemorySize(r.Pod, nil, s.cfg.Allocatable()))
		}
		if err := volume.MakeDir(r.Dir, on); err != nil {
			return volume.Mounted{}, err
		}
		return volume.Mounted{HostPath: r.Dir, ReadOnly: true},
			writeAtomically(r.Dir, files, volume.OwnerOf(r.Pod), s.cfg.Now())
	}, nil
}

// TakeDown implements volume.Remover.
func (s *Source) TakeDown(ctx context.Context, at volume.Place) error {
	s.tokens.forget(at.PodUID)
	s.cfg.Certificates.Forget(at.PodUID)
	return volume.RemoveTree(ctx, at.Dir)
}
