package customresource

import (
	"encoding/json"
	"fmt"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// published is the schema of a version as it stands in the OpenAPI documents: the definition's own, which is written in the same
// words. What OpenAPI v2 cannot say is left out there, where that is made.
func published(d *definition, version string) (*spec.Schema, error) {
	crd, err := d.load()
	if err != nil {
		return nil, err
	}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Name != version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		b, err := json.Marshal(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s of %s: %w", version, crd.Name, err)
		}
		out := &spec.Schema{}
		if err := json.Unmarshal(b, out); err != nil {
			return nil, fmt.Errorf("schema of %s of %s: %w", version, crd.Name, err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s has no schema of %s", crd.Name, version)
}
