package volume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/claims"
	"bonsai/pkg/kubelet/volume/emptydir"
	"bonsai/pkg/kubelet/volume/growth"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/image"
	"bonsai/pkg/kubelet/volume/projected"
)

// api is a hand-made API server: objects by kind/namespace/name, and tokens with a number.
type api struct {
	mu      sync.Mutex
	objects map[string]map[string]string
	tokens  int
	now     time.Time
	down    bool
	metrics volume.Metrics
}

func (a *api) ConfigMap(_ context.Context, ns, name string) (*corev1.ConfigMap, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d, ok := a.objects["cm/"+ns+"/"+name]; ok {
		return &corev1.ConfigMap{Data: d, BinaryData: map[string][]byte{"bin": {0, 255}}}, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmap"), name)
}

func (a *api) Secret(_ context.Context, ns, name string) (*corev1.Secret, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d, ok := a.objects["secret/"+ns+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secret"), name)
	}
	s := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range d {
		s.Data[k] = []byte(v)
	}
	return s, nil
}

func (a *api) CreateToken(_ context.Context, ns, account string, req *authv1.TokenRequest) (*authv1.TokenRequest,
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, errors.New("connection refused")
	}
	a.tokens++
	req.Status = authv1.TokenRequestStatus{
		Token:               fmt.Sprintf("%s/%s %v #%d", ns, account, req.Spec.Audiences, a.tokens),
		ExpirationTimestamp: metav1.NewTime(a.now.Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second))}
	return req, nil
}

func (a *api) set(key string, data map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[key] = data
}

func (a *api) clock() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.now }

func (a *api) advance(d time.Duration) { a.mu.Lock(); defer a.mu.Unlock(); a.now = a.now.Add(d) }

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this test mounts file systems and changes owners, which needs root")
	}
}

func newManager(t *testing.T, a *api) *volume.Manager {
	t.Helper()
	return newManagerOf(t, a, a, a)
}

// newManagerOf makes a manager of the sources that read objects and tokens from others than the api itself.
func newManagerOf(t *testing.T, a *api, objects projected.Objects, tokens projected.Tokens) *volume.Manager {
	t.Helper()
	if a.objects == nil {
		a.objects = map[string]map[string]string{}
	}
	a.now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sources := []volume.Source{emptydir.New(func() int64 { return 1 << 20 }), hostpath.New(), image.New()}
	files, err := projected.New(projected.Config{Objects: objects, Tokens: tokens, Certificates: a,
		Allocatable: func() int64 { return 64 << 20 }, Now: a.clock, Log: slog.New(slog.DiscardHandler),
		Field: func(p *corev1.Pod, path string) (string, error) { return p.Labels["v"] + path, nil },
		Resource: func(_ *corev1.Pod, c string, s *corev1.ResourceFieldSelector) (string, error) {
			return c + s.Resource, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range files {
		sources = append(sources, s)
	}
	m, err := volume.New(volume.Config{Growth: growth.New(growth.Config{}), PodsDir: filepath.Join(t.TempDir(), "pods"),
		Sources: sources, Claims: &claims.Resolver{}, Metrics: a.metrics, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // an error in the middle of a test must not leave mounts
		if err := m.Cleanup(context.Background(), func(_ types.UID, remove func() error) error {
			return remove()
		}); err != nil {
			t.Error(err)
		}
	})
	return m
}

func podOf(volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid-1",
		Labels: map[string]string{"v": "1 "}},
		Spec: corev1.PodSpec{ServiceAccountName: "sa", Volumes: volumes, Containers: []corev1.Container{{Name: "c"}}}}
}

func named(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }

func ptr[T any](v T) *T { return &v }

func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mode(t *testing.T, parts ...string) (os.FileMode, *syscall.Stat_t) {
	t.Helper()
	info, err := os.Stat(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode(), info.Sys().(*syscall.Stat_t)
}

func TestVolumesOfAPod(t *testing.T) {
	t.Parallel()
	needRoot(t)
	ctx := context.Background()
	a := &api{objects: map[string]map[string]string{"cm/ns/cfg": {"k": "v1", "l": "x"}, "secret/ns/s": {"pw": "hush"}}}
	m := newManager(t, a)
	pod := podOf(
		corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "mem",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory,
					SizeLimit: ptr(resource.MustParse("1Mi"))}}},
		corev1.Volume{Name: "cfg",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cfg")}}},
		corev1.Volume{Name: "sec",
			VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "s", DefaultMode: ptr[int32](0o400),
					Items: []corev1.KeyToPath{{Key: "pw", Path: "a/b/pw", Mode: ptr[int32](0o440)}}}}},
		corev1.Volume{Name: "all",
			VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
						ExpirationSeconds: ptr[int64](600)}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("cfg"),
						Items: []corev1.KeyToPath{{Key: "k", Path: "ca.crt"}}}},
					{Secret: &corev1.SecretProjection{LocalObjectReference: named("nope"), Optional: ptr(true)}},
					{DownwardAPI: &corev1.DownwardAPIProjection{
						Items: []corev1.DownwardAPIVolumeFile{
							{Path: "ns", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
							{Path: "cpu", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "c",
								Resource: "limits.cpu"}}}}}}}}},
		corev1.Volume{Name: "host",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.TempDir()}}},
	)
	got, err := m.Mount(ctx, pod)
	if err != nil {
		t.Fatal(err)
	}
	if md, _ := mode(t, got["tmp"].HostPath); md.Perm() != 0o777 || got["tmp"].ReadOnly {
		t.Error("emptyDir:", md, got["tmp"])
	}
	if !strings.HasSuffix(got["cfg"].HostPath, "/pods/uid-1/volumes/kubernetes.io~configmap/cfg") ||
		!got["cfg"].ReadOnly {
		t.Error("configMap:", got["cfg"])
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(got["mem"].HostPath, &st); err != nil || int64(st.Blocks)*st.Bsize != 1<<20 {
		t.Error("emptyDir in memory:", int64(st.Blocks)*st.Bsize, err)
	}
	if read(t, got["cfg"].HostPath, "k") != "v1" || read(t, got["cfg"].HostPath, "bin") != "\x00\xff" ||
		read(t, got["sec"].HostPath, "a/b/pw") != "hush" {
		t.Error("content")
	}
	if md, _ := mode(t, got["sec"].HostPath, "a/b/pw"); md.Perm() != 0o440 {
		t.Error("secret's mode:", md)
	}
	if !volume.IsMountPoint(got["sec"].HostPath) || !volume.IsMountPoint(got["all"].HostPath) {
		t.Error("secrets must be on memory")
	}
	all := got["all"].HostPath
	if read(t, all, "token") != "ns/sa [] #1" || read(t, all, "ca.crt") != "v1" ||
		read(t, all, "ns") != "1 metadata.namespace" || read(t, all, "cpu") != "climits.cpu" {
		t.Error("projected content")
	}
	link, _ := os.Readlink(filepath.Join(all, "..data"))

	if _, err := m.Mount(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if again, _ := os.Readlink(filepath.Join(all, "..data")); again != link {
		t.Error("an unchanged volume was written again")
	}
	a.set("cm/ns/cfg", map[string]string{"k": "v2"})
	a.advance(481 * time.Second)
	rctx, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- m.Run(rctx) }()
	m.Changed([]types.UID{"uid-1", "unknown"})
	await(t, func() bool { return read(t, all, "ca.crt") == "v2" && read(t, all, "token") == "ns/sa [] #2" })
	relabelled := pod.DeepCopy()
	relabelled.Labels["v"] = "2 "
	m.Update(relabelled)
	m.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "unknown"}})
	await(t, func() bool { return read(t, all, "ns") == "2 metadata.namespace" })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(got["cfg"].HostPath, "l")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a removed key is still there:", err)
	}
	if err := m.Unmount(ctx, "uid-1"); err != nil {
		t.Fatal(err)
	}
	if mounts, _ := volume.MountsBeneath(m.PodsDir()); len(mounts) > 0 {
		t.Error("still mounted:", mounts)
	}
	if m.Remembers("uid-1") {
		t.Error("remembered after Unmount")
	}
	if _, err := os.Stat(got["cfg"].HostPath); !errors.Is(err, os.ErrNotExist) {
		t.Error("refreshed after Unmount")
	}
}

func await(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatal("condition not met in 10 s")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestMountErrors(t *testing.T) {
	t.Parallel()
	m := newManager(t, &api{objects: map[string]map[string]string{"cm/ns/cfg": {"k": "v1"}}})
	vol := func(s corev1.VolumeSource) corev1.Volume { return corev1.Volume{Name: "x", VolumeSource: s} }
	cm := func(name string, opt *bool, items ...corev1.KeyToPath) corev1.Volume {
		return vol(corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named(name), Optional: opt, Items: items}})
	}
	for want, v := range map[string]corev1.Volume{
		`MountVolume.SetUp failed for volume "x" : configmap "none" not found`: cm("none", nil),
		`references non-existent config key: zz`: cm("cfg", nil,
			corev1.KeyToPath{Key: "zz", Path: "zz"}),
		`leaves the volume`: cm("cfg", nil,
			corev1.KeyToPath{Key: "k", Path: "../../evil"}),
		`no volume plugin matched`: vol(
			corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}),
		`hostPath type check failed: /dev/null is not a directory`: vol(
			corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev/null",
				Type: ptr(corev1.HostPathDirectory)}}),
	} {
		if _, err := m.Mount(context.Background(), podOf(v)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	got, err := m.Mount(context.Background(), podOf(cm("none", ptr(true))))
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(got["x"].HostPath + "/[^.]*"); len(names) > 0 {
		t.Error("an absent optional configMap has files:", names)
	}
	bad := podOf()
	bad.UID = "../x"
	if _, err := m.Mount(context.Background(), bad); err == nil {
		t.Error("a UID that is a path was accepted")
	}
}

// The expectations are those of the conformance tests "should set ownership and permission when RunAsUser or FsGroup is
// present".
func TestTokenOwnership(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for name, tc := range map[string]struct {
		user, group *int64
		mode        os.FileMode
		uid, gid    uint32
	}{
		"neither": {nil, nil, 0o644, 0, 0},
		"user":    {ptr[int64](1000), nil, 0o600, 1000, 0},
		"group":   {nil, ptr[int64](10000), 0o640, 0, 10000},
		"both":    {ptr[int64](1000), ptr[int64](10000), 0o640, 1000, 10000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, &api{})
			pod := podOf(corev1.Volume{Name: "t",
				VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{
							{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}},
				corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: tc.group}
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: tc.user}
			got, err := m.Mount(context.Background(), pod)
			if err != nil {
				t.Fatal(err)
			}
			md, st := mode(t, got["t"].HostPath, "token")
			if md.Perm() != tc.mode || st.Uid != tc.uid || st.Gid != tc.gid {
				t.Errorf("token %v %d:%d, want %+v", md, st.Uid, st.Gid, tc)
			}
			if md, st := mode(t, got["e"].HostPath); tc.group != nil &&
				(md&os.ModeSetgid == 0 || md.Perm() != 0o777 || st.Gid != tc.gid) {
				t.Errorf("emptyDir %v %d", md, st.Gid)
			}
		})
	}
}

func TestSubPath(t *testing.T) {
	t.Parallel()
	needRoot(t)
	m := newManager(t, &api{})
	pod := podOf(corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	got, err := m.Mount(context.Background(), pod)
	if err != nil {
		t.Fatal(err)
	}
	vol := got["e"].HostPath
	for _, err := range []error{os.WriteFile(filepath.Join(vol, "file"), []byte("f1"), 0o644),
		os.Symlink("/etc", filepath.Join(vol, "abs")), os.Symlink("../../../..", filepath.Join(vol, "up")),
		os.Symlink("file", filepath.Join(vol, "in"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sub := func(i int, p string) (string, error) { return m.SubPath(pod, "c", i, "e", got["e"], p) }
	dir, err := sub(0, "made/here")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("y"),
		0o600); err != nil || read(t, vol, "made/here/x") != "y" {
		t.Error(err)
	}
	if md, _ := mode(t, vol, "made"); md.Perm() != 0o777 {
		t.Error("a made directory has mode", md)
	}
	file, err := sub(1, "in")
	if err != nil || read(t, file) != "f1" {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(vol, "file")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(vol, "file"), []byte("f2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if again, err := sub(1, "in"); err != nil || again != file || read(t, again) != "f2" {
		t.Error("a restarted container must see the new file:", err)
	}
	pipe := filepath.Join(vol, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// as a hostPath may be one
	if p, err := m.SubPath(pod, "c", 2, "e", volume.Mounted{HostPath: pipe}, "x"); err == nil {
		t.Errorf("a part of a pipe gave %s", p)
	}
	for _, bad := range []string{"abs", "abs/passwd", "up", "up/x", "..", "../x", "/etc", "a/../../x"} {
		if p, err := sub(2, bad); err == nil {
			t.Errorf("%q gave %s", bad, p)
		}
	}
	if err := m.Remove(context.Background(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(m.PodsDir()); len(left) > 0 {
		t.Error("left:", left)
	}
}

func TestCleanupKeepsLivePods(t *testing.T) {
	t.Parallel()
	told := &counted{}
	m := newManager(t, &api{metrics: told})
	for _, uid := range []types.UID{"live", "dead"} {
		if _, err := m.WriteHosts(uid, []byte("h")); err != nil {
			t.Fatal(err)
		}
		log, err := m.TerminationLog(uid, "c")
		if err != nil {
			t.Fatal(err)
		}
		if md, _ := mode(t, log); md.Perm() != 0o666 {
			t.Error("termination log:", md)
		}
		podsDir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(log))))
		for of, want := range map[types.UID]bool{uid: true, "other": false, "": false, "..": false} {
			if volume.IsTerminationLog(podsDir, of, "c", log) != want {
				t.Errorf("%s of the pod %q: want %t", log, of, want)
			}
		}
		if volume.IsTerminationLog(podsDir, uid, "d", log) ||
			volume.IsTerminationLog(podsDir, uid, "c", filepath.Join(filepath.Dir(log), "../c/../../volumes/x")) {
			t.Error("another path is a termination log")
		}
	}
	if _, err := m.TerminationLog("live", "../c"); err == nil {
		t.Error("a container's name that is a path was accepted")
	}
	dead := func(uid types.UID, remove func() error) error {
		if uid == "dead" {
			return remove()
		}
		return nil
	}
	if err := m.Cleanup(context.Background(), dead); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(m.PodsDir())
	if len(left) != 1 || left[0].Name() != "live" {
		t.Error("left:", left)
	}
	if err := m.Cleanup(context.Background(), dead); err != nil {
		t.Fatal(err)
	}
	if want := []string{"swept 1 0", "swept 0 0"}; !slices.Equal(told.notes, want) {
		t.Errorf("%v, want %v", told.notes, want)
	}
}
