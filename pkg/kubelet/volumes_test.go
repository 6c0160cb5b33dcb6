package kubelet

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	authv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csitest"
	"bonsai/pkg/kubelet/volume/local"
	"bonsai/pkg/kubelet/volume/projected"
	"bonsai/pkg/kubelet/volume/volumetest"
)

// volumeContent is what the volumes of TestVolumeSources are filled with.
type volumeContent struct{}

func (volumeContent) ConfigMap(context.Context, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"k": "v"}}, nil
}

func (volumeContent) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"pw": []byte("hush")}}, nil
}

func (volumeContent) CreateToken(_ context.Context, _, _ string, req *authv1.TokenRequest) (*authv1.TokenRequest,
	error) {
	req.Status = authv1.TokenRequestStatus{Token: "t",
		ExpirationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(time.Hour))}
	return req, nil
}

func (volumeContent) TrustBundles(context.Context,
	*corev1.ClusterTrustBundleProjection) ([]*certificatesv1.ClusterTrustBundle, error) {
	return []*certificatesv1.ClusterTrustBundle{{}}, nil
}

func (volumeContent) Get(context.Context, *corev1.Pod, string, int, *corev1.PodCertificateProjection,
	bool) (key, chain []byte, err error) {
	return []byte("k"), []byte("c"), nil
}

func (volumeContent) Forget(types.UID) {}

func (volumeContent) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: new(false),
		VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent,
			storagev1.VolumeLifecycleEphemeral}}}, nil
}

// WatchCSIDriver shows none.
func (volumeContent) WatchCSIDriver(string) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &storagev1.CSIDriverList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}, apiclient.PlainListWatch{})
}

func (volumeContent) VolumeAttachment(context.Context, string) (*storagev1.VolumeAttachment, error) {
	return &storagev1.VolumeAttachment{}, nil
}

func (volumeContent) Announce(context.Context, string, csi.NodeInfo) error { return nil }
func (volumeContent) Limit(context.Context, string, int64) error           { return nil }
func (volumeContent) Withdraw(context.Context, string) error               { return nil }

// TestVolumeSources: every kind of volume in the list keeps the contract.
func TestVolumeSources(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this test mounts file systems, which needs root")
	}
	drivers, plugins := csi.NewDrivers(volumeContent{}, volumeContent{}, slog.New(slog.DiscardHandler)), t.TempDir()
	driver := csitest.Start(t, &csitest.Driver{Info: &spec.NodeGetInfoResponse{NodeId: "n"}})
	if err := drivers.Register(t.Context(), "d", driver.Endpoint, []string{"1.0.0"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { drivers.Deregister(context.Background(), "d", driver.Endpoint) })
	list := func() []volume.Source {
		c := volumeContent{}
		sources, err := volumeSources(projected.Config{Objects: c, Tokens: c, Certificates: c,
			Allocatable: func() int64 { return 64 << 20 }, Now: func() time.Time { return time.Unix(0, 0) },
			Log:   slog.New(slog.DiscardHandler),
			Field: func(*corev1.Pod, string) (string, error) { return "f", nil },
			Resource: func(*corev1.Pod, string, *corev1.ResourceFieldSelector) (string, error) {
				return "r", nil
			}}, local.Config{Dir: filepath.Join(plugins, "local"), PodsDir: plugins,
			Mounts: mount.NewSafeFormatAndMount(kernelMounts{}, utilexec.New())},
			csi.New(csi.Config{Records: csi.Records{Dir: plugins, PodsDir: plugins}, Node: "n", Client: c,
				Drivers: drivers}))
		if err != nil {
			t.Fatal(err)
		}
		return sources
	}
	field := []corev1.DownwardAPIVolumeFile{
		{Path: "ns", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}
	token := &corev1.ServiceAccountTokenProjection{Path: "token"}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	pv := func(s corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: s}}
	}
	inline := map[string][]corev1.VolumeSource{
		"empty-dir": {{EmptyDir: &corev1.EmptyDirVolumeSource{}},
			{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		"host-path":    {{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}},
		"image":        {{Image: &corev1.ImageVolumeSource{Reference: "i"}}},
		"configmap":    {{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		"secret":       {{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}},
		"downward-api": {{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: field}}},
		"projected": {{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: token}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: field}},
			{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: new("b"), Path: "ca"}},
			{PodCertificate: &corev1.PodCertificateProjection{CredentialBundlePath: "own"}}}}}},
		"csi": {{CSI: &corev1.CSIVolumeSource{Driver: "d"}}},
		"nfs": {{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/x"}}},
	}
	claimed := map[string]*corev1.PersistentVolume{
		"host-path": pv(corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}),
		"csi": pv(corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}),
		"local-volume": pv(corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: t.TempDir()}}),
		"nfs":          pv(corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/x"}}),
	}
	examples := map[string][]volume.Spec{}
	for name, list := range inline {
		for _, v := range list {
			examples[name] = append(examples[name], volume.Spec{Volume: &corev1.Volume{Name: name, VolumeSource: v}})
		}
	}
	for name, pv := range claimed {
		examples[name] = append(examples[name],
			volume.Spec{Volume: &corev1.Volume{Name: name, VolumeSource: claim}, PV: pv})
	}
	for i, s := range list() {
		name := s.Name()
		if len(examples[name]) == 0 {
			t.Errorf("no volume of kind %s to test it with", name)
		}
		k := volumetest.Kind{New: func() volume.Source { return list()[i] }}
		for other, vs := range examples {
			if other != name {
				k.Others = append(k.Others, vs...)
			}
		}
		for _, v := range examples[name] {
			k.Volume, k.PV = *v.Volume, v.PV
			t.Run(name, func(t *testing.T) { volumetest.Run(t, k) })
		}
	}
}

// kernelMounts binds directories as the mount command does, and has a tmpfs for every NFS export.
type kernelMounts struct{ mount.Interface }

func (kernelMounts) Mount(source, target, fstype string, options []string) error {
	if fstype == "nfs" {
		return unix.Mount(source, target, "tmpfs", 0, "size=1m")
	}
	return unix.Mount(source, target, "", unix.MS_BIND, "")
}
