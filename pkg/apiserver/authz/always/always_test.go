package always_test

import (
	"testing"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/always"
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	if d, _, err := (always.Allow{}).Authorize(t.Context(), authz.Attributes{}); d != authz.Allow || err != nil {
		t.Errorf("Allow: %v, %v", d, err)
	}
	// Deny leaves the answer to later modes, as upstream's does.
	if d, reason, err := (always.Deny{}).Authorize(t.Context(), authz.Attributes{}); d != authz.NoOpinion ||
		reason == "" || err != nil {
		t.Errorf("Deny: %v, %q, %v", d, reason, err)
	}
	if d, _, err := authz.Union(always.Deny{}, always.Allow{}).Authorize(t.Context(),
		authz.Attributes{}); d != authz.Allow || err != nil {
		t.Errorf("Deny, then Allow: %v, %v", d, err)
	}
}
