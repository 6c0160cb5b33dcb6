package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// marker is what a Secret hides.
const marker = "a-text-that-nothing-else-on-this-disk-has"

// TestEncryption: of three control planes nobody writes a Secret's text to etcd. The key is changed by a command that
// is killed again and again, while clients write and read, and none of them notices. A snapshot of before is restored;
// one of another cluster is refused.
func TestEncryption(t *testing.T) {
	dir := t.TempDir()
	e := env{bin: cluster.bin, data: filepath.Join(dir, "keys"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	must := func(args ...string) string {
		t.Helper()
		out, err := e.command(4*time.Minute, "bonsai",
			append([]string{"--data-dir", e.data, "--name", "keys"}, args...)...)
		if err != nil {
			t.Fatal(out, err)
		}
		return out
	}
	must("up", "--control-planes", "3", "--egress=false", "--addons=coredns=false", "--wait", "3m")
	config, err := clientcmd.BuildConfigFromFlags("", e.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout, config.QPS = 30*time.Second, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets("default")
	for i := range 100 {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", i)},
			StringData: map[string]string{"text": marker}}
		if _, err := secrets.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	must("snapshot", "save", "before")
	work, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); wg.Wait() })
	for i := range 4 {
		wg.Go(func() { keepsWriting(work, t, client, fmt.Sprintf("w-%d", i)) })
	}
	wg.Go(func() { keepsReading(work, t, client, 100) })
	for _, milliseconds := range []int{1, 300, 700, 2_000, 11_000} {
		killedAfter(t, e, time.Duration(milliseconds)*time.Millisecond)
	}
	t.Log(must("encryption", "rotate"))
	stop()
	wg.Wait()
	status := must("encryption", "status")
	if strings.Count(status, "\naesgcm ") != 2 || !strings.Contains(status, "104       writes and reads") ||
		!strings.Contains(status, "0         kept for snapshots before") || strings.Contains(status, "identity") {
		t.Errorf("status: %s", status)
	}
	if found := filesWith(t, filepath.Join(e.data, "etcd"), marker); len(found) > 0 {
		t.Errorf("a Secret's text is in %q", found)
	}
	must("stop")
	must("start")
	readsAll(t, client, 100)
	refusedElsewhere(t, e)
	must("snapshot", "restore", "before")
	waitFor(t, "the API server answers", func() bool {
		_, err := secrets.Get(t.Context(), "s-0", metav1.GetOptions{})
		return err == nil
	})
	readsAll(t, client, 100)
	if _, err := secrets.Get(t.Context(), "w-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret of after the snapshot: %v", err)
	}
	must("encryption", "rotate")
	readsAll(t, client, 100)
}

// keepsWriting creates a Secret and updates it until ctx ends. Nothing but ctx may stop it.
func keepsWriting(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) {
	secrets := client.CoreV1().Secrets("default")
	s, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	for n := 0; err == nil; n++ {
		s.Data = map[string][]byte{"text": []byte(marker), "n": fmt.Append(nil, n)}
		var next *corev1.Secret
		if next, err = secrets.Update(ctx, s, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
			next, err = secrets.Get(ctx, name, metav1.GetOptions{})
		}
		s = next
	}
	if ctx.Err() == nil {
		t.Errorf("the writer of %s: %v", name, err)
	}
}

// keepsReading lists all Secrets, from etcd and from the cache, until ctx ends.
func keepsReading(ctx context.Context, t *testing.T, client kubernetes.Interface, least int) {
	for ctx.Err() == nil {
		for _, version := range []string{"", "0"} {
			list, err := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{ResourceVersion: version})
			if ctx.Err() == nil && (err != nil || len(list.Items) < least) {
				t.Errorf("a list in between: %v", err)
				return
			}
		}
	}
}

// killedAfter begins a change of the key, and kills it after a time, if it is not done by then.
func killedAfter(t *testing.T, e env, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(e.bin, "bonsai"), "--data-dir", e.data, "encryption",
		"rotate").CombinedOutput()
	t.Logf("killed after %s: %v\n%s", after, err, out)
}

// readsAll reads the Secrets that the test began with.
func readsAll(t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	for i := range n {
		s, err := client.CoreV1().Secrets("default").Get(t.Context(), fmt.Sprintf("s-%d", i), metav1.GetOptions{})
		if err != nil || string(s.Data["text"]) != marker {
			t.Fatalf("Secret %d: %v", i, err)
		}
	}
}

// filesWith returns the files below dir with a text, as it is or in base64.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		// The middle of what base64 makes of the text does not depend on what is before it.
		encoded := base64.RawStdEncoding.EncodeToString([]byte(text))
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(encoded)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refusedElsewhere copies a snapshot to the other cluster, which refuses it and goes on.
func refusedElsewhere(t *testing.T, e env) {
	t.Helper()
	foreign := filepath.Join(cluster.data, "snapshots", "foreign")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(foreign) })
	from := filepath.Join(e.data, "snapshots", "before")
	if out, err := exec.Command("cp", "-a", from, foreign).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "snapshot", "restore", "foreign")
	if err == nil || !strings.Contains(out, "are encrypted by key-") ||
		!strings.Contains(out, "--with-encryption-keys") {
		t.Errorf("another cluster's snapshot: %v, %s", err, out)
	}
	cluster.bonsai(t, "status")
}

// TestKeysOfMachines: a machine that joins with a control plane gets the keys, and each new one while they are changed
// on the first machine. Authorities that were uploaded before cannot be joined with any more.
func TestKeysOfMachines(t *testing.T) {
	isLong(t)
	all := onLAN(t, "k1", "k2")
	first, second := all[0], all[1]
	first.bonsai("up", "--advertise-address", "192.0.2.1", "--addons=coredns=false")
	first.run("kubectl", "create", "secret", "generic", "s", "--from-literal=text="+marker)
	join := strings.Fields(first.bonsai("token", "create", "--upload-certs", "--print-join-command"))[1:]
	second.bonsai(append(join, "--node-name", "k2")...)
	keysOf := func(m machine) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(m.data, "encryption", "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := keysOf(first)
	if keysOf(second) != before {
		t.Error("the machine that joined has other keys")
	}
	waitFor(t, "etcd's members", func() bool { return second.members()["k2"] == "voter" })
	first.bonsai("encryption", "rotate")
	after := keysOf(first)
	if after == before || keysOf(second) != after {
		t.Error("the machines have other keys after the change")
	}
	for _, m := range all {
		if out := m.run("kubectl", "get", "secret", "s", "-o", "jsonpath={.data.text}"); out !=
			base64.StdEncoding.EncodeToString([]byte(marker)) {
			t.Errorf("%s reads %s", m.netns, out)
		}
		if out := m.bonsai("encryption", "status"); !strings.Contains(out, "writes and reads") ||
			strings.Contains(out, "identity") {
			t.Errorf("%s: %s", m.netns, out)
		}
		if found := filesWith(t, filepath.Join(m.data, "etcd"), marker); len(found) > 0 {
			t.Errorf("a Secret's text is in %q", found)
		}
	}
	if out, err := second.try("kubectl", "get", "secret", "-n", "kube-system", "kubeadm-certs"); err == nil ||
		!strings.Contains(out, "NotFound") {
		t.Errorf("the authorities of before: %s, %v", out, err)
	}
}
