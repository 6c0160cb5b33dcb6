package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// convert makes the v3 document of a server that has only one of v2. It says all that the other one says, also of other
// groups, as Kubernetes' does.
func convert(v2 []byte) ([]byte, error) {
	doc := &spec.Swagger{}
	if err := json.Unmarshal(v2, doc); err != nil {
		return nil, fmt.Errorf("reading another server's document: %w", err)
	}
	return json.Marshal(openapiconv.ConvertV2ToV3(doc))
}
