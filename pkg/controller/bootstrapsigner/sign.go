package bootstrapsigner

import (
	"maps"
	"strings"

	"bonsai/api/bootstraptoken"
)

// signed returns data with the signatures of the given tokens, and no others. Without content nothing is signed.
func signed(data map[string]string, tokens []bootstraptoken.Token) map[string]string {
	out := maps.Clone(data)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, bootstraptoken.ClusterInfoSignedBy) })
	if text, ok := data[bootstraptoken.ClusterInfoContent]; ok {
		for _, t := range tokens {
			out[bootstraptoken.ClusterInfoSignedBy+t.ID] = t.Sign(text)
		}
	}
	return out
}
