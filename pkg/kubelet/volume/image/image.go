// Package image gives pods the content of images as volumes (KEP-4639). The runtime mounts them into each container,
// from images that are brought to the node before the container is made; there is nothing of them among a pod's files.
package image

import (
	"context"

	"bonsai/pkg/kubelet/volume"
)

// Source gives images. It is no volume.Remover: the collection of images removes those that no pod uses.
type Source struct{}

var _ volume.Source = Source{}

// New returns the source of image volumes.
func New() Source { return Source{} }

// Name implements volume.Source.
func (Source) Name() string { return "image" }

// Supports implements volume.Source.
func (Source) Supports(s volume.Spec) bool { return s.Volume.Image != nil }

// Prepare implements volume.Source.
func (Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	return func() (volume.Mounted, error) { return volume.Mounted{ReadOnly: true, Image: r.Volume.Image}, nil }, nil
}
