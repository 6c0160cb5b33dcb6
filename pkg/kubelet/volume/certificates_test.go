package volume_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TrustBundles returns those of bundle/NAME, or of any name if the source selects.
func (a *api) TrustBundles(_ context.Context,
	s *corev1.ClusterTrustBundleProjection) (found []*certificatesv1.ClusterTrustBundle, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(a.objects)) {
		name, is := strings.CutPrefix(key, "bundle/")
		if is && (s.Name == nil || *s.Name == name) {
			found = append(found, &certificatesv1.ClusterTrustBundle{
				Spec: certificatesv1.ClusterTrustBundleSpec{TrustBundle: a.objects[key]["pem"]}})
		}
	}
	if found == nil && s.Name != nil {
		return nil, apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundles"), *s.Name)
	}
	return found, nil
}

// Get returns a credential that says what it is for.
func (a *api) Get(_ context.Context, _ *corev1.Pod, volume string, index int, s *corev1.PodCertificateProjection,
	_ bool) (key, chain []byte, err error) {
	return []byte("key\n"), fmt.Appendf(nil, "%s %d %s\n", volume, index, s.SignerName), nil
}

func (a *api) Forget(types.UID) {}

func certificate(content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)}))
}

// TestTrustBundles: a file has the certificates of all bundles that are asked for, each once, in an order that stays.
func TestTrustBundles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	one, two := certificate("1"), certificate("2")
	headers := strings.Replace(one, "-----\n", "-----\na: b\n\n", 1)
	m := newManager(t, &api{objects: map[string]map[string]string{
		"bundle/a": {"pem": two + "between\n" + headers}, "bundle/b": {"pem": one}}})
	signer := "example.com/s"
	for name, c := range map[string]struct {
		source      corev1.ClusterTrustBundleProjection
		want, fault string
	}{
		"selected": {source: corev1.ClusterTrustBundleProjection{SignerName: &signer,
			LabelSelector: &metav1.LabelSelector{}}, want: one + two},
		"named":         {source: corev1.ClusterTrustBundleProjection{Name: ptr("b")}, want: one},
		"missing":       {source: corev1.ClusterTrustBundleProjection{Name: ptr("c")}, fault: `"c" not found`},
		"missing, fine": {source: corev1.ClusterTrustBundleProjection{Name: ptr("c"), Optional: ptr(true)}},
	} {
		c.source.Path = "dir/ca.pem"
		pod := podOf(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ClusterTrustBundle: &c.source}}}}})
		pod.UID = types.UID(strings.ReplaceAll(name, ", ", "-"))
		got, err := m.Mount(t.Context(), pod)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		if text := read(t, got["v"].HostPath, "dir/ca.pem"); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	none := newManager(t, &api{})
	pod := podOf(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{SignerName: &signer, Path: "p"}}}}}})
	if _, err := none.Mount(t.Context(), pod); err == nil || !strings.Contains(err.Error(),
		"combination of signerName and labelSelector matched zero ClusterTrustBundles") {
		t.Error(err)
	}
}

// TestCertificateFiles: a key and its certificates are in one file or in two, and the pod's user alone reads them.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	m := newManager(t, &api{})
	pod := podOf(corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s", CredentialBundlePath: "both.pem"}},
			{PodCertificate: &corev1.PodCertificateProjection{SignerName: "s", KeyPath: "key.pem",
				CertificateChainPath: "chain.pem"}}}}}})
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr[int64](1000)}
	got, err := m.Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"both.pem": "key\nv 0 s\n", "key.pem": "key\n", "chain.pem": "v 1 s\n"} {
		if text := read(t, got["v"].HostPath, file); text != want {
			t.Errorf("%s: %q", file, text)
		}
		if md, st := mode(t, got["v"].HostPath, file); md.Perm() != 0o600 || st.Uid != 1000 {
			t.Errorf("%s: %v of %d", file, md, st.Uid)
		}
	}
}
