package main

import (
	"bonsai/pkg/why"
	"bonsai/pkg/why/presence"
)

// explainers lists who explains which kind.
func explainers() why.Explainers {
	return why.Explainers{
		Kinds: map[why.GroupKind]why.Explainer{},
		Other: why.ExplainerFunc(presence.Explain),
	}
}
