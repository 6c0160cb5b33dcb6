package images

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// fullNode is a node that has images, of which a container uses one.
type fullNode struct {
	images  []runtime.Image
	used    string
	dir     string
	removed []string
	// lists counts the lists of containers; at the second one, a container of the image late has been made.
	lists int
	late  string
}

func (d *fullNode) Images(context.Context) ([]runtime.Image, error) { return d.images, nil }

func (d *fullNode) Image(_ context.Context, name string) (*runtime.Image, error) {
	if name == "sha256:a" {
		return nil, errors.New("ambiguous digest string")
	}
	for i := range d.images {
		if slices.Contains(d.images[i].RepoTags, name) {
			return &d.images[i], nil
		}
	}
	return nil, nil
}

func (d *fullNode) Pods(context.Context) ([]*runtime.PodStatus, error) {
	d.lists++
	p := &runtime.PodStatus{Containers: []runtime.Container{{ImageID: d.used}}}
	if d.lists > 1 {
		p.Containers = append(p.Containers, runtime.Container{ImageID: d.late})
	}
	return []*runtime.PodStatus{p}, nil
}

func (d *fullNode) Filesystems(context.Context) (runtime.Filesystems, error) {
	return runtime.Filesystems{Images: d.dir}, nil
}

func (d *fullNode) RemoveImage(_ context.Context, id string) error {
	d.removed = append(d.removed, id)
	return nil
}

// Of what has not been used for a long time, everything goes but what a container uses, or a volume, or a container
// that was made meanwhile.
func TestCollectUnusedImages(t *testing.T) {
	t.Parallel()
	d := &fullNode{used: "container", late: "late", dir: t.TempDir(),
		images: []runtime.Image{{ID: "container"}, {ID: "volume", RepoTags: []string{"v:1"}}, {ID: "late"},
			{ID: "unused"}}}
	now := time.Unix(0, 0)
	var reasons []Reason
	c := &Collector{Policy: Policy{High: 100, Low: 100, MaxAge: time.Hour}, Node: d,
		Manager: New(Config{Log: slog.New(slog.DiscardHandler)}), Now: func() time.Time {
			return now
		},
		Removed: func(r Reason) { reasons = append(reasons, r) },
		Pods: func() []*corev1.Pod {
			of := func(reference string) corev1.Volume {
				return corev1.Volume{VolumeSource: corev1.VolumeSource{
					Image: &corev1.ImageVolumeSource{Reference: reference}}}
			}
			// The first one nobody can have: it keeps nothing.
			return []*corev1.Pod{{Spec: corev1.PodSpec{Volumes: []corev1.Volume{of("sha256:a"), of("v:1")}}}}
		}, Log: slog.New(slog.DiscardHandler)}
	if err := c.Collect(t.Context()); err != nil || len(d.removed) > 0 {
		t.Fatal("seen for the first time:", d.removed, err)
	}
	now, d.lists = now.Add(2*time.Hour), 0
	if err := c.Collect(t.Context()); err != nil || !slices.Equal(d.removed, []string{"unused"}) {
		t.Error("removed", d.removed, err)
	}
	if !slices.Equal(reasons, []Reason{forAge}) {
		t.Error("reasons", reasons)
	}
	// A disk that is fuller than it may be, and nothing to remove.
	c.Policy = Policy{High: 0, Low: 0}
	d.images = d.images[:1]
	var few *TooFew
	if err := c.Collect(t.Context()); !errors.As(err, &few) || few.Freed != 0 || few.Need <= 0 {
		t.Error(err)
	}
}
