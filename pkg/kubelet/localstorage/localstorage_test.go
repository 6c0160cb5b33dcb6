package localstorage

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

func limits(text string) corev1.ResourceRequirements {
	if text == "" {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(text)}}
}

func volume(name, limit string, medium corev1.StorageMedium) corev1.Volume {
	v := corev1.Volume{Name: name,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
	if limit != "" {
		v.EmptyDir.SizeLimit = new(resource.MustParse(limit))
	}
	return v
}

func taken(m map[string]int64) map[string]runtime.DiskUse {
	out := map[string]runtime.DiskUse{}
	for name, n := range m {
		out[name] = runtime.DiskUse{Bytes: n, Inodes: 1}
	}
	return out
}

// TestExceeded:
// https://kubernetes.io/docs/concepts/storage/ephemeral-storage/#ephemeral-storage-consumption-management.
func TestExceeded(t *testing.T) {
	t.Parallel()
	const mi = 1 << 20
	signals := map[string]string{"": "", "Container": "ephemeralcontainerfs.limit", "Pod": "ephemeralpodfs.limit",
		"Usage": "emptydirfs.limit"}
	for name, c := range map[string]struct {
		a, b     string // limits of two containers
		volumes  []corev1.Volume
		priority int32
		usage    Usage
		want     string
	}{
		"no limits": {usage: Usage{Logs: taken(map[string]int64{"a": 99 * mi})}},
		"within":    {a: "10Mi", b: "10Mi", usage: Usage{Logs: taken(map[string]int64{"a": 10 * mi, "b": 9 * mi})}},
		"a container": {a: "10Mi", b: "30Mi", usage: Usage{Logs: taken(map[string]int64{"a": 10*mi + 1})},
			want: `Container a exceeded its local ephemeral storage limit "10Mi". `},
		"the pod's sum, with its volumes": {a: "10Mi", b: "10Mi", volumes: []corev1.Volume{volume("v", "", "")},
			usage: Usage{Logs: taken(map[string]int64{"a": 9 * mi, "b": 9 * mi}),
				Volumes: taken(map[string]int64{"v": 3 * mi})},
			want: `Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. `},
		"the sum, with a container that has no limit": {a: "10Mi",
			usage: Usage{Logs: taken(map[string]int64{"b": 11 * mi})},
			want:  `Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. `},
		"a volume": {volumes: []corev1.Volume{volume("v", "1Mi", ""), volume("w", "5Mi", "")},
			usage: Usage{Volumes: taken(map[string]int64{"v": mi, "w": 6 * mi})},
			want:  `Usage of EmptyDir volume "w" exceeds the limit "5Mi". `},
		"a volume in memory": {volumes: []corev1.Volume{volume("m", "1Mi", corev1.StorageMediumMemory)},
			usage: Usage{Volumes: taken(map[string]int64{"m": 2 * mi})}},
		"a critical pod": {a: "1Mi", priority: 2_000_000_000,
			usage: Usage{Logs: taken(map[string]int64{"a": 2 * mi})}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: c.volumes, Priority: &c.priority,
			Containers: []corev1.Container{{Name: "a", Resources: limits(c.a)}, {Name: "b", Resources: limits(c.b)}}}}
		got := exceeded(pod, c.usage)
		if got == nil {
			got = &runtime.Ending{}
		}
		if got.Message != c.want || got.Signal != signals[strings.Split(c.want, " ")[0]] {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestTree: blocks count, not lengths; a file of two names counts once; links lead nowhere.
func TestTree(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write := func(dir, name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := tree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	write(dir, "a", 1<<20)
	write(outside, "big", 1<<20)
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer sparse.Close()
	if err := sparse.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	got, err := tree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if used := got.Bytes - empty.Bytes; used < 1<<20 || used > 1<<20+1<<17 {
		t.Errorf("%d bytes, want about %d", used, 1<<20)
	}
	if n := got.Inodes - empty.Inodes; n != 3 { // the file, the link and the sparse one
		t.Errorf("%d inodes", n)
	}
	if n, err := tree(t.Context(), filepath.Join(dir, "gone")); n != (runtime.DiskUse{}) || err != nil {
		t.Errorf("a directory that is not there: %v, %v", n, err)
	}
	if n := podLogs(outside); n != (runtime.DiskUse{Bytes: 1 << 20, Inodes: 1}) {
		t.Errorf("logs: %v", n)
	}
}

// TestDeepTree: what a tree costs grows with its files, not with their paths' lengths as well.
func TestDeepTree(t *testing.T) { // not parallel: it looks at what the process allocates
	const depth, files = 400, 3
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range depth {
		// Two directories at each level: the way back must lead to the other one.
		file, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err := errors.Join(err, unix.Close(file), unix.Mkdirat(at, "d", 0o700),
			unix.Mkdirat(at, "e", 0o700)); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(at, []string{"d", "e"}[i%2], unix.O_DIRECTORY, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = below
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	got, err := tree(t.Context(), dir)
	goruntime.ReadMemStats(&after)
	if want := int64(files*depth + 1); err != nil || got.Inodes != want {
		t.Errorf("%d inodes, want %d: %v", got.Inodes, want, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("it took %d MiB", used>>20)
	}
}
