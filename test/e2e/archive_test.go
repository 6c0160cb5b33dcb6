package e2e

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// labelled is busybox with a label, so that it is another image: the kubelet takes what it has pulled under one name
// for pulled under every name of the same image, and asks who may have it (KEP-2535).
func labelled(t *testing.T, label string) v1.Image {
	t.Helper()
	image, err := tarball.ImageFromPath(filepath.Join(cluster.bin, "images", "busybox.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := *file.Config.DeepCopy()
	config.Labels = map[string]string{"of": label}
	if image, err = mutate.Config(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// writeArchive writes such an image as docker save does.
func writeArchive(t *testing.T, path, as, label string) {
	t.Helper()
	tag, err := name.NewTag(as)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, tag, labelled(t, label)); err != nil {
		t.Fatal(err)
	}
}
