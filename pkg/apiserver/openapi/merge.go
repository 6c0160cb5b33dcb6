package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/pkg/apiserver/catalog"
)

// buildMerged makes the one document of OpenAPI 2 with what other servers say of their paths. What they call as this
// one does and means something else gets another name. A server whose document cannot be read is left out: it must not
// take the document of all away.
func (s *Service) buildMerged(now *catalog.Snapshot, remotes []Remote) ([]byte, error) {
	raw, err := s.buildV2(now)
	if err != nil || len(remotes) == 0 {
		return raw, err
	}
	all := &spec.Swagger{}
	if err := json.Unmarshal(raw, all); err != nil {
		return nil, fmt.Errorf("reading the own document: %w", err)
	}
	for _, r := range remotes {
		other := &spec.Swagger{}
		if json.Unmarshal(r.JSON, other) != nil || other.Paths == nil {
			continue
		}
		aggregator.FilterSpecByPaths(other, []string{r.Prefix})
		if err := aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(all, other); err != nil {
			continue
		}
	}
	return json.Marshal(all)
}
