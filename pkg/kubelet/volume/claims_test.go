package volume_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/claims"
	"bonsai/pkg/kubelet/volume/emptydir"
	"bonsai/pkg/kubelet/volume/growth"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/local"
	"bonsai/pkg/kubelet/volume/nfs"
)

// bound is an API server that has claims and what they are bound to.
type bound struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	metrics volume.Metrics
}

func (b *bound) PersistentVolumeClaim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim,
	error) {
	if c := b.claims[name]; c != nil && namespace == c.Namespace {
		return c, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), name)
}

func (b *bound) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	if v := b.volumes[name]; v != nil {
		return v, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumes"), name)
}

// add makes a claim and a volume that are bound, both of the name.
func (b *bound) add(name string, source corev1.PersistentVolumeSource) (*corev1.PersistentVolumeClaim,
	*corev1.PersistentVolume) {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("claim-" + name)},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source,
			ClaimRef: &corev1.ObjectReference{Namespace: "ns", Name: name, UID: c.UID}}}
	if b.claims == nil {
		b.claims, b.volumes = map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}
	}
	b.claims[name], b.volumes[v.Name] = c, v
	return c, v
}

// manager makes a manager as a kubelet does that has just started, with its pods in dir.
func (b *bound) manager(t *testing.T, dir string) *volume.Manager {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}
	mounts := mount.NewSafeFormatAndMount(mount.New(""), utilexec.New())
	m, err := volume.New(volume.Config{Growth: growth.New(growth.Config{}), PodsDir: dir, Metrics: b.metrics,
		Log: slog.New(slog.DiscardHandler), Claims: &claims.Resolver{Client: b, Node: func() *corev1.Node {
			return node
		}},
		Sources: []volume.Source{emptydir.New(func() int64 {
			return 1 << 20
		}), hostpath.New(), local.New(
			local.Config{Dir: filepath.Join(filepath.Dir(dir), "disks"), PodsDir: dir, Mounts: mounts}),
			nfs.New(mounts)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Cleanup(context.Background(), func(_ types.UID, remove func() error) error {
			return remove()
		}); err != nil {
			t.Error(err)
		}
	})
	return m
}

func claimed(uid, claim string, readOnly bool) *corev1.Pod {
	p := podOf(corev1.Volume{Name: "data",
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: readOnly}}})
	p.UID = types.UID(uid)
	return p
}

func localAt(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}

// TestClaimedData: what a pod writes to a claim is on the volume, outlives a restart of the kubelet, the pod, and the
// directory of a pod that is removed while the volume is mounted.
func TestClaimedData(t *testing.T) {
	needRoot(t)
	t.Parallel()
	disk, dir := t.TempDir(), filepath.Join(t.TempDir(), "pods")
	b := &bound{}
	b.add("c", localAt(disk))
	pod := claimed("uid-1", "c", false)
	got, err := b.manager(t, dir).Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir,
		"uid-1/volumes/kubernetes.io~local-volume/pv-c"); got["data"].HostPath != want || got["data"].ReadOnly {
		t.Errorf("mounted %+v, want %s", got["data"], want)
	}
	if err := os.WriteFile(filepath.Join(got["data"].HostPath, "f"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	restarted := b.manager(t, dir)
	if again, err := restarted.Mount(t.Context(), pod); err != nil || again["data"] != got["data"] {
		t.Errorf("after a restart: %+v, %v", again, err)
	}
	if points, err := volume.MountsBeneath(dir); err != nil || len(points) != 1 {
		t.Errorf("mounts %v, %v", points, err)
	}
	b.claims["c"] = nil // a refresh of a running pod asks nobody
	if _, err := restarted.Mount(t.Context(), pod); err != nil {
		t.Error(err)
	}
	// A third kubelet has never seen the pod.
	if err := b.manager(t, dir).Remove(t.Context(), "uid-1"); err != nil {
		t.Error(err)
	}
	if points, err := volume.MountsBeneath(dir); err != nil || len(points) != 0 {
		t.Errorf("still mounted: %v, %v", points, err)
	}
	if read(t, disk, "f") != "kept" {
		t.Error("the data is changed")
	}
}

// TestRemoveMountKeepsData: a directory that has data although nothing is mounted there is left alone.
func TestRemoveMountKeepsData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := volume.RemoveMount(dir); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
		t.Error(err)
	}
}

// TestReadOnlyClaim: the volume itself cannot be written through the pod's mount.
func TestReadOnlyClaim(t *testing.T) {
	needRoot(t)
	t.Parallel()
	b := &bound{}
	b.add("c", localAt(t.TempDir()))
	got, err := b.manager(t, t.TempDir()).Mount(t.Context(), claimed("u", "c", true))
	if err != nil || !got["data"].ReadOnly {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(got["data"].HostPath, "f"), nil, 0o600); err == nil {
		t.Error("written")
	}
}

// TestUnusableClaims: each reason for which a pod's claim is not mounted, in upstream's words.
func TestUnusableClaims(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	block := corev1.PersistentVolumeBlock
	const unprocessed = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: "
	for want, change := range map[string]func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *corev1.Pod){
		unprocessed + `error processing PVC ns/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, _ *corev1.Pod) {
			c.Namespace = "other"
		},
		unprocessed + "error processing PVC ns/c: PVC is not bound": func(c *corev1.PersistentVolumeClaim,
			_ *corev1.PersistentVolume, _ *corev1.Pod) {
			c.Status.Phase = corev1.ClaimPending
		},
		unprocessed + "error processing PVC ns/c: PVC is being deleted": func(c *corev1.PersistentVolumeClaim,
			_ *corev1.PersistentVolume, _ *corev1.Pod) {
			c.DeletionTimestamp = &now
		},
		unprocessed + `error processing PVC ns/c: failed to fetch PV gone from API server: persistentvolumes "gone" not found`: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, _ *corev1.Pod) {
			c.Spec.VolumeName = "gone"
		},
		unprocessed + `error processing PVC ns/c: found PV object pv-c with unexpected pvc UID "x", expected "claim-c"`: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, _ *corev1.Pod) {
			v.Spec.ClaimRef.UID = "x"
		},
		unprocessed + "volume data has volumeMode Block, but is specified in volumeMounts": func(
			_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, p *corev1.Pod) {
			v.Spec.VolumeMode = &block
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}}
		},
		unprocessed + "PVC ns/p-data was not created for pod ns/p (pod is not owner)": func(
			c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume, p *corev1.Pod) {
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			c.Name = "p-data"
		},
		`MountVolume.NodeAffinity check failed for volume "pv-c" : no matching NodeSelectorTerms`: func(
			_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, _ *corev1.Pod) {
			v.Spec.NodeAffinity = zone("b")
		},
		`MountVolume.MountOptionSupport check failed for volume "pv-c" : Mount options are not supported for this volume type`: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, _ *corev1.Pod) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			v.Spec.MountOptions = []string{"noatime"}
		},
		`MountVolume.NewMounter initialization failed for volume "pv-c" : path "/does/not/exist" does not exist`: func(
			_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume, _ *corev1.Pod) {
			v.Spec.Local.Path = "/does/not/exist"
		},
	} {
		b := &bound{}
		c, v := b.add("c", localAt("/tmp"))
		pod := claimed("u", "c", false)
		change(c, v, pod)
		b.claims[c.Name] = c
		if _, err := b.manager(t, t.TempDir()).Mount(t.Context(), pod); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func zone(name string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}}
}

// TestUsableClaims: a volume of this node's zone, a claim made for the pod, and one that is being deleted while its pod
// runs.
func TestUsableClaims(t *testing.T) {
	t.Parallel()
	host := corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}
	b := &bound{}
	_, v := b.add("zone", host)
	v.Spec.NodeAffinity = zone("a")
	own, _ := b.add("p-data", host)
	own.OwnerReferences = []metav1.OwnerReference{{UID: "made", Controller: ptr(true)}}
	going, _ := b.add("going", host)
	going.DeletionTimestamp = ptr(metav1.Now())
	made := claimed("made", "", false)
	made.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	runs := claimed("runs", "going", false)
	runs.Status.Phase = corev1.PodRunning
	m := b.manager(t, t.TempDir())
	for _, pod := range []*corev1.Pod{claimed("u", "zone", false), made, runs} {
		if got, err := m.Mount(t.Context(), pod); err != nil || got["data"].HostPath != "/tmp" {
			t.Errorf("pod %s: %+v, %v", pod.UID, got, err)
		}
	}
}

// TestReadWriteOncePod: the second pod gets the volume when the first one's is taken down, not earlier.
func TestReadWriteOncePod(t *testing.T) {
	t.Parallel()
	b := &bound{}
	_, v := b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	m := b.manager(t, t.TempDir())
	for range 2 {
		if _, err := m.Mount(t.Context(), claimed("first", "c", false)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
	if _, err := m.Mount(t.Context(),
		claimed("second", "c", false)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := m.Unmount(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Mount(t.Context(), claimed("second", "c", false)); err != nil {
		t.Error(err)
	}
}

// TestOwnershipOfData: the pod's group gets what is there already, as the policy says; links lead nowhere.
func TestOwnershipOfData(t *testing.T) {
	needRoot(t)
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pod := podOf()
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr(int64(3000))}
	disk := t.TempDir()
	file := filepath.Join(disk, "d", "f")
	for _, err := range []error{os.Mkdir(filepath.Join(disk, "d"), 0o700), os.WriteFile(file, nil, 0o400),
		os.Symlink(outside, filepath.Join(disk, "l")), volume.SetOwnership(t.Context(), disk, pod)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]os.FileMode{disk: 0o775 | os.ModeSetgid,
		filepath.Join(disk, "d"): 0o770 | os.ModeSetgid, file: 0o660} {
		if m, st := mode(t, path); m&^os.ModeDir != want || st.Gid != 3000 {
			t.Errorf("%s: %v of group %d, want %v", path, m, st.Gid, want)
		}
	}
	if m, st := mode(t, outside); m != 0o600 || st.Gid == 3000 {
		t.Errorf("what a link leads to: %v of group %d", m, st.Gid)
	}
	for policy, want := range map[corev1.PodFSGroupChangePolicy]os.FileMode{corev1.FSGroupChangeOnRootMismatch: 0o600,
		corev1.FSGroupChangeAlways: 0o660} {
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
		pod.Spec.SecurityContext.FSGroupChangePolicy = &policy
		if err := volume.SetOwnership(t.Context(), disk, pod); err != nil {
			t.Fatal(err)
		}
		if m, _ := mode(t, file); m != want {
			t.Errorf("%s: %v, want %v", policy, m, want)
		}
	}
}

// TestOwnershipOfDepths: directories as deep as a pod can make them cost no memory, and all of them get the group.
func TestOwnershipOfDepths(t *testing.T) { // not parallel: it counts what is allocated
	needRoot(t)
	const levels = 1500
	name := strings.Repeat("d", 255)
	pod := podOf()
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr(int64(3000))}
	disk := t.TempDir()
	at, err := unix.Open(disk, unix.O_PATH, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		below, opened := unix.Openat(at, name, unix.O_PATH, 0)
		_ = unix.Close(at)
		at, err = below, opened
	}
	defer unix.Close(at)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := volume.SetOwnership(t.Context(), disk, pod); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if cost := (after.TotalAlloc - before.TotalAlloc) >> 20; cost > 50 {
		t.Errorf("%d levels cost %d MiB", levels, cost)
	}
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil || st.Gid != 3000 || st.Mode&0o7777 != 0o2770 {
		t.Errorf("the deepest directory has the group %d and the mode %o: %v", st.Gid, st.Mode, err)
	}
}

// commands records what the mount command is asked for, and says that its helper is missing.
type commands struct {
	mount.Interface
	asked [][]string
}

func (c *commands) Mount(source, target, fstype string, options []string) error {
	c.asked = append(c.asked, append([]string{source, target, fstype}, options...))
	return mount.NewMountError(mount.MountErrorType("x"), "mount failed: exit status 32")
}

// TestNFSMount: what the mount command is asked for; nothing is left when it fails.
func TestNFSMount(t *testing.T) {
	t.Parallel()
	b := &bound{}
	_, v := b.add("c", corev1.PersistentVolumeSource{
		NFS: &corev1.NFSVolumeSource{Server: "fd00::1", Path: "/e", ReadOnly: true}})
	v.Spec.MountOptions = []string{"nfsvers=4.1"}
	dir := t.TempDir()
	cmd := &commands{}
	m, err := volume.New(volume.Config{Growth: growth.New(growth.Config{}), PodsDir: dir,
		Log: slog.New(slog.DiscardHandler), Claims: &claims.Resolver{Client: b},
		Sources: []volume.Source{nfs.New(cmd)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Mount(t.Context(), claimed("u", "c", false))
	if err == nil || err.Error() != `MountVolume.SetUp failed for volume "pv-c" : mount failed: exit status 32` {
		t.Errorf("error %v", err)
	}
	at := filepath.Join(dir, "u/volumes/kubernetes.io~nfs/pv-c")
	if want := []string{"[fd00::1]:/e", at, "nfs", "nfsvers=4.1",
		"ro"}; len(cmd.asked) != 1 || !slices.Equal(cmd.asked[0], want) {
		t.Errorf("asked %v, want %v", cmd.asked, want)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("the mount point stays: %v", err)
	}
}

// TestNFSOption: a server's name that the mount command would take for one of its options reaches it never. Anybody who
// may make pods chooses that name, and the command runs as root on the node.
func TestNFSOption(t *testing.T) {
	t.Parallel()
	pod := podOf()
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		NFS: &corev1.NFSVolumeSource{Server: "-iT/tmp/d", Path: "/fstab"}}}}
	cmd := &commands{}
	m, err := volume.New(volume.Config{Growth: growth.New(growth.Config{}), PodsDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler), Claims: &claims.Resolver{Client: &bound{}},
		Sources: []volume.Source{nfs.New(cmd)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Mount(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "-iT/tmp/d") ||
		len(cmd.asked) > 0 {
		t.Errorf("asked %v, error %v", cmd.asked, err)
	}
}

// TestOnePlaceForTwoVolumes: a volume of the pod does not get the place of a PersistentVolume of the same name.
func TestOnePlaceForTwoVolumes(t *testing.T) {
	t.Parallel()
	b := &bound{}
	b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
	pod := claimed("u", "c", false)
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "pv-c",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
	if _, err := b.manager(t, t.TempDir()).Mount(t.Context(),
		pod); err == nil || !strings.Contains(err.Error(), "another volume of the pod has the directory") {
		t.Errorf("error %v", err)
	}
	pod.Spec.Volumes[1] = pod.Spec.Volumes[0]
	pod.Spec.Volumes[1].Name = "again"
	if got, err := b.manager(t, t.TempDir()).Mount(t.Context(), pod); err != nil || got["again"] != got["data"] {
		t.Errorf("one claim twice: %+v, %v", got, err)
	}
}
