package csi_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csitest"
)

// server is an API server with a driver's object, attachments and secrets.
type server struct {
	driver      *storagev1.CSIDriver
	attachments map[string]*storagev1.VolumeAttachment
	tokens      int
}

func (s *server) CSIDriver(_ context.Context, name string) (*storagev1.CSIDriver, error) {
	if s.driver == nil {
		return nil, apierrors.NewNotFound(storagev1.Resource("csidrivers"), name)
	}
	return s.driver, nil
}

func (s *server) VolumeAttachment(_ context.Context, name string) (*storagev1.VolumeAttachment, error) {
	if a := s.attachments[name]; a != nil {
		return a, nil
	}
	return nil, apierrors.NewNotFound(storagev1.Resource("volumeattachments"), name)
}

func (s *server) Secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"from": []byte(namespace + "/" + name)}}, nil
}

func (s *server) CreateToken(_ context.Context, _, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest,
	error) {
	s.tokens++
	req.Status.Token = account + " for " + strings.Join(req.Spec.Audiences, ",")
	return req, nil
}

// WatchCSIDriver shows none.
func (*server) WatchCSIDriver(string) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &storagev1.CSIDriverList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}, apiclient.PlainListWatch{})
}

// announced keeps what was said of the node's drivers.
type announced map[string]csi.NodeInfo

func (a announced) Announce(_ context.Context, driver string, info csi.NodeInfo) error {
	a[driver] = info
	return nil
}

func (a announced) Limit(_ context.Context, driver string, maxVolumes int64) error {
	info := a[driver]
	info.MaxVolumes = maxVolumes
	a[driver] = info
	return nil
}

func (a announced) Withdraw(_ context.Context, driver string) error { delete(a, driver); return nil }

// house is a node with a driver called d.
type house struct {
	t      *testing.T
	api    *server
	driver *csitest.Driver
	list   *csi.Drivers
	told   announced
	root   string
	// shown are the volumes that the Node was to show in use; show, if any, decides.
	shown []corev1.UniqueVolumeName
	show  func() error
}

func newHouse(t *testing.T, can ...spec.NodeServiceCapability_RPC_Type) *house {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this test mounts file systems, which needs root")
	}
	api, told := &server{}, announced{}
	h := &house{t: t, api: api, root: t.TempDir(), told: told,
		list: csi.NewDrivers(told, api, slog.New(slog.DiscardHandler)),
		driver: csitest.Start(t,
			&csitest.Driver{Capabilities: can, Info: &spec.NodeGetInfoResponse{NodeId: "node-id"}})}
	if err := h.list.Register(t.Context(), "d", h.driver.Endpoint, []string{"1.0.0"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := volume.RemoveTree(context.Background(), filepath.Join(h.root, "pods")); err != nil {
			t.Error(err)
		}
		h.list.Deregister(context.Background(), "d", h.driver.Endpoint)
	})
	return h
}

// restarted is the source of a kubelet that has just started.
func (h *house) restarted() *csi.Source {
	return csi.New(csi.Config{Records: h.records(), Node: "n1", Client: h.api, Drivers: h.list,
		ShowInUse: func(_ context.Context, v corev1.UniqueVolumeName) error {
			h.shown = append(h.shown, v)
			if h.show != nil {
				return h.show()
			}
			return nil
		}})
}

// records are what a kubelet finds on the disk.
func (h *house) records() csi.Records {
	return csi.Records{Dir: filepath.Join(h.root, "plugins/kubernetes.io/csi"), PodsDir: filepath.Join(h.root, "pods")}
}

// inUse checks which volumes are in use by what is on the disk.
func (h *house) inUse(when string, want ...corev1.UniqueVolumeName) {
	h.t.Helper()
	if got, err := h.records().InUse(); err != nil || !slices.Equal(got, want) {
		h.t.Errorf("%s: in use: %v, %v, want %v", when, got, err, want)
	}
}

// notAttached has the driver's volumes need no attachment.
func (h *house) notAttached(change func(*storagev1.CSIDriverSpec)) {
	h.api.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}
	if change != nil {
		change(&h.api.driver.Spec)
	}
}

func (h *house) request(uid string, s volume.Spec) volume.Request {
	h.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: types.UID(uid)},
		Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
	dir := filepath.Join(h.root, "pods", uid, "volumes/kubernetes.io~csi", s.VolumeName())
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		h.t.Fatal(err)
	}
	return volume.Request{Place: volume.Place{PodUID: pod.UID, Name: s.VolumeName(), Dir: dir,
		Notes: filepath.Join(h.root, "pods", uid, "notes")}, Pod: pod, Spec: s}
}

func persistent() volume.Spec {
	return volume.Spec{Volume: &corev1.Volume{Name: "data"},
		PV: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				MountOptions: []string{"noatime"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{
					CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "vol", FSType: "ext4",
						VolumeAttributes:     map[string]string{"a": "b"},
						NodeStageSecretRef:   &corev1.SecretReference{Namespace: "s", Name: "stage"},
						NodePublishSecretRef: &corev1.SecretReference{Namespace: "s", Name: "publish"}}}}}}
}

func publish(t *testing.T, s *csi.Source, r volume.Request) (volume.Mounted, error) {
	t.Helper()
	f, err := s.Prepare(t.Context(), r)
	if err != nil {
		return volume.Mounted{}, err
	}
	return f()
}

func (h *house) expect(what string, want ...string) {
	h.t.Helper()
	if got := h.driver.Calls(); !slices.Equal(got, want) {
		h.t.Errorf("%s: the driver was asked %v, want %v", what, got, want)
	}
}
