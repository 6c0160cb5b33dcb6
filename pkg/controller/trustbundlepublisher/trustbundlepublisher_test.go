package trustbundlepublisher

import (
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestReconcile: the bundle is there as it should be, and it is the only one of its signer.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const path = "/apis/certificates.k8s.io/v1/clustertrustbundles"
	bundle := func(name, signer, text string) *certificatesv1.ClusterTrustBundle {
		return &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: text}}
	}
	for name, c := range map[string]struct {
		have []*certificatesv1.ClusterTrustBundle
		want []string
	}{
		"nothing":      {want: []string{"POST " + path}},
		"as it should": {have: []*certificatesv1.ClusterTrustBundle{bundle("OWN", signer, "text")}},
		"changed": {have: []*certificatesv1.ClusterTrustBundle{bundle("OWN", signer, "other")},
			want: []string{"PUT " + path + "/OWN"}},
		"an earlier one": {have: []*certificatesv1.ClusterTrustBundle{bundle("OWN", signer, "text"),
			bundle(prefix+"0", signer, "old"), bundle("x", "example.com/s", "old")},
			want: []string{"DELETE " + path + "/" + prefix + "0"}},
	} {
		fake := &controllertest.Fake{Answer: func(c controllertest.Call) (runtime.Object, error) {
			if b, is := c.Object.(*certificatesv1.ClusterTrustBundle); is {
				return b, nil
			}
			return &metav1.Status{}, nil
		}}
		ctl, err := New(fake.Deps(t, time.Unix(0, 0)), []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.have {
			b.Name = strings.Replace(b.Name, "OWN", ctl.bundle.Name, 1)
			controllertest.Put(t, ctl.bundles, b)
		}
		for i := range c.want {
			c.want[i] = strings.Replace(c.want[i], "OWN", ctl.bundle.Name, 1)
		}
		if _, err := ctl.Reconcile(t.Context(), controller.Key{}); err != nil || !slices.Equal(fake.Names(), c.want) {
			t.Errorf("%s: %v, %v, want %v", name, err, fake.Names(), c.want)
		}
	}
}
