package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImages: an image is loaded from an archive and runs; what is no image is refused with the archive's name and the
// reason; an image goes from every node, but not while a container has it.
func TestImages(t *testing.T) {
	k := newNamespace(t, "kubectl", "images")
	const image = "localhost/busybox:1.0"
	text := filepath.Join(t.TempDir(), "app.txt")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "image", "load", text); err == nil ||
		!strings.Contains(out, text+": is no tar archive") {
		t.Errorf("a text: %s, %v", out, err)
	}
	k.run("run", "user", "--image="+image, "--overrides", `{"spec":{"nodeName":"n2"}}`, "--command", "--", "sleep",
		"1000")
	k.eventually("a pod of it runs", is("Running"), "get", "pod", "user", "-o", "jsonpath={.status.phase}")
	if out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "image", "rm", image); err == nil ||
		!strings.Contains(out, "has it") {
		t.Errorf("it is used: %s, %v", out, err)
	}
	cluster.bonsai(t, "image", "rm", "--force", image)
	if out := cluster.bonsai(t, "image", "list"); strings.Contains(out, image) {
		t.Errorf("it is there: %s", out)
	}
	if out := cluster.bonsai(t, "image", "load",
		filepath.Join(cluster.bin, "images", "busybox.tar")); !strings.Contains(out, "loaded "+image) {
		t.Errorf("load: %s", out)
	}
	if out := cluster.bonsai(t, "image", "list"); !strings.Contains(out, image) || !strings.Contains(out, "n1,n2") {
		t.Errorf("list: %s", out)
	}
	k.run("run", "again", "--image="+image, "--restart=Never", "--command", "--", "true")
	k.eventually("a new pod of it runs", is("Succeeded"), "get", "pod", "again", "-o", "jsonpath={.status.phase}")
}
