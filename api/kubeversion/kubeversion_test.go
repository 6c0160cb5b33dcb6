package kubeversion

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestParts: the forms are made of the parts, and the oldest compatible version is one minor below.
func TestParts(t *testing.T) {
	t.Parallel()
	release := version.MustParseSemantic(Release)
	if !Parsed().EqualTo(version.MajorMinor(release.Major(), release.Minor())) || !strings.HasPrefix(Git, Release+"+") {
		t.Errorf("API %s, release %s, git %s", Parsed(), release, Git)
	}
	if got := Parsed().SubtractMinor(1).String(); got != Previous {
		t.Errorf("the oldest compatible version is %s, want %s", Previous, got)
	}
}
