package projected

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// trustFile adds the certificates of the ClusterTrustBundles that a source names or selects, each once. Their order
// means nothing, and is always the same, so that the file changes only if they do. Where an optional source has none,
// the file is empty.
func (c *content) trustFile(ctx context.Context, s *corev1.ClusterTrustBundleProjection, mode int32,
	files map[string]file) error {
	optional := s.Optional != nil && *s.Optional
	found, err := c.cfg.Objects.TrustBundles(ctx, s)
	if err != nil && !(optional && apierrors.IsNotFound(err)) {
		return fmt.Errorf("while getting ClusterTrustBundle: %w", err)
	}
	if len(found) == 0 && !optional {
		return errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
	}
	var all [][]byte // DER
	for _, one := range found {
		for rest := []byte(one.Spec.TrustBundle); ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			all = append(all, block.Bytes)
		}
	}
	slices.SortFunc(all, bytes.Compare)
	var text []byte
	for _, der := range slices.CompactFunc(all, bytes.Equal) {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	files[s.Path] = file{data: text, mode: mode}
	return nil
}
