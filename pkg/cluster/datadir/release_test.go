package datadir

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"bonsai/api/kubeversion"
	"bonsai/pkg/cluster/plan"
)

// TestNewer: a minor version counts within its major version only, and patches do not count.
func TestNewer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		served, own string
		want        bool
	}{
		{"1.37.9", "1.37", false}, {"1.38.0-beta.0", "1.37", true}, {"1.36.1", "1.37", false},
		{"2.0.0", "1.37", true}, {"1.37.2", "2.0", false}, {"2.1.0", "2.0", true},
	} {
		if got := newer(version.MustParseSemantic(c.served), version.MustParse(c.own)); got != c.want {
			t.Errorf("newer(%s, %s) = %v", c.served, c.own, got)
		}
	}
}

// TestRelease: a cluster goes on with its own release and with newer ones, and not with an older one.
func TestRelease(t *testing.T) {
	t.Parallel()
	for served, want := range map[string]string{
		"":                  "", // before there was such a file
		kubeversion.Release: "",
		"v1.36.0":           "",
		"v1.37.99":          "", // patches only mend
		"v1.38.0-beta.0":    "was served by v1.38.0-beta.0 of Kubernetes",
		"v2.0.0":            "a cluster cannot be downgraded",
		"later":             "later",
	} {
		l := plan.Layout(t.TempDir())
		if err := os.Mkdir(l.At("etcd"), 0o700); err != nil {
			t.Fatal(err)
		}
		if served != "" {
			if err := os.WriteFile(l.Release(), []byte(served+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := SaveRelease(l)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", served, err, want)
		}
		text, err := os.ReadFile(l.Release())
		if now := strings.TrimSpace(string(text)); err != nil || want == "" && now != kubeversion.Release ||
			want != "" && now != served {
			t.Errorf("%q is %q afterwards, %v", served, now, err)
		}
	}
}
