package cniresult

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// script is a CNI plug-in.
const script = `#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}' ;;
*) cat > /dev/null; echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}]}' ;;
esac
`

// TestTimes: what CNI's library itself leaves behind is read, with the time of a real network namespace.
func TestTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plugin"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	list, err := libcni.ConfListFromBytes([]byte(`{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"plugin"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const before = 20 * time.Millisecond // the kernel's clock for files has steps
	start := time.Now().Add(-before)
	// It dies with its input.
	holder := exec.Command("unshare", "--user", "--net", "cat")
	input, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Skip("there is no unshare: ", err)
	}
	t.Cleanup(func() { input.Close(); _ = holder.Wait() })
	namespace := filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "ns/net")
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	late, again := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		if now, err := os.Readlink(namespace); err == nil && now != own {
			break
		}
		select {
		case <-late:
			t.Skip("no network namespace can be made here")
		case <-again.C:
		}
	}
	// As the mount of a runtime does: the kernel keeps the time for as long as the namespace's file is in use.
	held, err := os.Open(namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	const id = "0123456789abcdef"
	cni := libcni.NewCNIConfigWithCacheDir([]string{dir}, dir, nil)
	if _, err := cni.AddNetworkList(context.Background(), list, &libcni.RuntimeConf{ContainerID: id, NetNS: namespace,
		IfName: "eth0"}); err != nil {
		t.Fatal(err)
	}
	results := Dir(filepath.Join(dir, "results"))
	begun, ended, ok := results.Times(id)
	if now := time.Now(); !ok || begun.Before(start) || ended.Before(begun) || ended.After(now.Add(before)) {
		t.Errorf("from %v to %v, %t; it is %v", begun, ended, ok, now)
	}
	// Older libraries do not say the namespace themselves.
	file := filepath.Join(string(results), "pods-"+id+"-eth0")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	older := `{"result":{"interfaces":[{"name":"cni0"},{"name":"eth0","sandbox":"` + namespace + `"}]}}`
	if err := os.WriteFile(file, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if b, e, ok := results.Times(id); !ok || b != begun || e != ended {
		t.Errorf("without the namespace: from %v to %v, %t", b, e, ok)
	}
	for _, other := range []string{"", "*", "0123", "../results/x"} {
		if begun, ended, ok := results.Times(other); ok {
			t.Errorf("the sandbox %q: from %v to %v", other, begun, ended)
		}
	}
}

// TestNothing: files that say nothing, or nonsense, give no times.
func TestNothing(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"no JSON": "{", "no namespace": "{}", "a relative one": `{"netns":"x"}`,
		"one that is gone": `{"netns":"/nowhere/x"}`, "huge": `{"x":"` + strings.Repeat("x", maxFile) + `","netns":"/"}`,
		"made after it was ready": `{"netns":"/proc/self/fd"}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, "pods-1-eth0")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if begun, ended, ok := Dir(dir).Times("1"); ok {
			t.Errorf("%s: from %v to %v", name, begun, ended)
		}
	}
}
