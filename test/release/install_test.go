// Package release tests the scripts of a release's archive on a directory that looks like one.
package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// installed is a place where archives are installed.
type installed struct {
	t                  *testing.T
	archive, lib, path string // path: the programs that the scripts find; systemctl is none of them
	synced             string // the kubelet that was in place at each flush of the disks
}

// place returns a place with nothing in it.
func place(t *testing.T) *installed {
	t.Helper()
	dir := t.TempDir()
	p := &installed{t: t, archive: filepath.Join(dir, "archive"), lib: filepath.Join(dir, "prefix", "lib", "bonsai"),
		path: filepath.Join(dir, "path"), synced: filepath.Join(dir, "synced")}
	p.write(filepath.Join(p.path, "sync"), "#!/bin/sh\ncat '"+p.lib+"/kubelet' >>'"+p.synced+"' 2>&1 || true\n", 0o755)
	for _, program := range []string{"sh", "id", "dirname", "cat", "uname", "mkdir", "rm", "cp", "chown", "mv", "ln",
		"sed", "tr", "readlink", "grep", "rmdir"} {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, filepath.Join(p.path, program)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *installed) write(path, text string, mode os.FileMode) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		p.t.Fatal(err)
	}
}

// pack makes an archive whose files say version, with more of them.
func (p *installed) pack(version string, more ...string) {
	p.t.Helper()
	if err := os.RemoveAll(p.archive); err != nil {
		p.t.Fatal(err)
	}
	for _, name := range append([]string{"kubelet", "images/pause.tar", "runtime/cni/bridge"}, more...) {
		p.write(filepath.Join(p.archive, "bin", name), version, 0o755)
	}
	arch := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	for name, text := range map[string]string{"ARCH": arch, "LICENSE": "", "NOTICE": "", "THIRD_PARTY_NOTICES": ""} {
		p.write(filepath.Join(p.archive, name), text, 0o644)
	}
	shell, err := os.ReadFile("/bin/sh") // stands in for the program that supervises a cluster
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(filepath.Join(p.archive, "bin", "bonsai"), string(shell), 0o755)
	for name, from := range map[string]string{"install.sh": "install-release.sh", "running.sh": "running.sh",
		"uninstall.sh": "uninstall.sh"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", from))
		if err != nil {
			p.t.Fatal(err)
		}
		p.write(filepath.Join(p.archive, name), string(text), 0o755)
	}
}

// run runs a script with more environment.
func (p *installed) run(script string, env ...string) (string, error) {
	c := exec.CommandContext(p.t.Context(), "/bin/sh", script)
	c.Env = append([]string{"PATH=" + p.path, "PREFIX=" + filepath.Dir(filepath.Dir(p.lib)),
		"BONSAI_HOME=" + filepath.Dir(p.archive)}, env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (p *installed) install(env ...string) {
	p.t.Helper()
	if out, err := p.run(filepath.Join(p.archive, "install.sh"), env...); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// refused checks that a script does nothing because a cluster runs.
func (p *installed) refused(when, script string) {
	p.t.Helper()
	if out, err := p.run(script); err == nil || !strings.Contains(out, "a cluster runs: bonsai stop --data-dir /data") {
		p.t.Errorf("%s, %s: %v, %s", when, filepath.Base(script), err, out)
	}
}

// TestUpgradeBelow: an upgrade below a cluster that runs gives its nodes the new programs. They have the directory
// mounted, which only its files may leave. What runs on is still seen to run, and the content of the new files is on
// the disk before they are in place.
func TestUpgradeBelow(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	p := place(t)
	p.pack("1", "etcd", "images/gone.tar")
	p.install()
	node, err := os.Open(p.lib) // as a mount of it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	supervisor := exec.CommandContext(t.Context(), filepath.Join(p.lib, "bonsai"), "-c", "read line", "sh", "supervise",
		"--data-dir", "/data")
	input, err := supervisor.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	p.pack("2", "kube-proxy")
	p.refused("below a cluster", filepath.Join(p.archive, "install.sh"))
	if err := os.RemoveAll(p.synced); err != nil {
		t.Fatal(err)
	}
	p.install("KEEP_RUNNING=1")
	for name, want := range map[string]string{"kubelet": "2", "kube-proxy": "2", "images/pause.tar": "2",
		"runtime/cni/bridge": "2", "etcd": "", "images/gone.tar": ""} {
		got, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/%s", node.Fd(), name))
		if string(got) != want || err != nil && !(want == "" && errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("a node sees %s as %q, %v; want %q", name, got, err, want)
		}
	}
	if synced, err := os.ReadFile(p.synced); string(synced) != "1" {
		t.Errorf("when the disks were flushed, %q was in place: %v", synced, err)
	}
	p.refused("after an upgrade", filepath.Join(p.archive, "install.sh"))
	p.refused("after an upgrade", filepath.Join(p.lib, "uninstall.sh"))
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait() // the end of its input is a failure for read
	p.install()
	left, err := os.ReadDir(filepath.Dir(p.lib))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the installation: %v, %v", left, err)
	}
}
