package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bonsai/test/conformance/images"
)

// Versions of what go.mod does not pin because it is no part of the suite's module graph: containerd is a module with a
// graph of its own.
const containerdVersion = "2.3.7"

// suiteVersion is the version of k8s.io/kubernetes in go.mod.
const suiteVersion = "v1.37.2"

// goBinary is a program built from a Go package; dir "" means the module that pins the suite.
type goBinary struct {
	name string
	args []string
}

// suiteBinaries are built from this module's go.mod.
var suiteBinaries = []goBinary{
	// Some specs take what their own version has: without one, the pods of no version are known.
	{"e2e.test", []string{"test", "-c", "-ldflags=-s -w" + suiteVersionFlags(), "k8s.io/kubernetes/test/e2e"}},
	{"ginkgo", []string{"build", "-ldflags=-s -w", "github.com/onsi/ginkgo/v2/ginkgo"}},
	// kubectl without a version does not compare it with the server's, which is an error of "kubectl version".
	{"kubectl", []string{"build", "-ldflags=-s -w" + suiteVersionFlags(), "k8s.io/kubernetes/cmd/kubectl"}},
}

// suiteVersionFlags returns the linker's flags that tell a program of the suite its version.
func suiteVersionFlags() string {
	parts := strings.SplitN(strings.TrimPrefix(suiteVersion, "v"), ".", 3)
	flags := ""
	for _, v := range [][2]string{{"gitVersion", suiteVersion}, {"gitMajor", parts[0]}, {"gitMinor", parts[1]}} {
		flags += " -X k8s.io/component-base/version." + v[0] + "=" + v[1]
	}
	return flags
}

// imageBinaries go into the test images.
var imageBinaries = []goBinary{
	{"agnhost", []string{"build", "-ldflags=-s -w", "k8s.io/kubernetes/test/images/agnhost"}},
	{"nonewprivs", []string{"build", "-ldflags=-s -w", "k8s.io/kubernetes/test/images/nonewprivs"}},
	{"regression-issue-74839",
		[]string{"build", "-ldflags=-s -w", "k8s.io/kubernetes/test/images/regression-issue-74839"}},
	{"sample-apiserver", []string{"build", "-ldflags=-s -w", "k8s.io/sample-apiserver"}},
}

// buildMissing builds every binary and image that the data directory does not hold yet. Another release's suite must
// have been built, by a checkout that pins it.
func (s settings) buildMissing(ctx context.Context) error {
	if s.suite != suiteVersion {
		if done, err := images.Finished(s.imageTree()); !done || err != nil {
			return errors.Join(err, fmt.Errorf("-suite: %s has no suite of %s; run make conformance once in a checkout "+
				"whose test/conformance pins that release", s.data, s.suite))
		}
		return nil
	}
	for _, b := range suiteBinaries {
		if err := s.buildGo(ctx, s.bin(b.name), b); err != nil {
			return err
		}
	}
	if err := s.buildContainerd(ctx); err != nil {
		return err
	}
	if done, err := images.Finished(s.imageTree()); done || err != nil {
		return err
	}
	for _, b := range imageBinaries {
		if err := s.buildGo(ctx, s.work(b.name), b); err != nil {
			return err
		}
	}
	suite, err := s.suiteImages(ctx)
	if err != nil {
		return err
	}
	for name, script := range map[string][]string{
		"busybox": {filepath.Join(s.module, "../../deploy/images/busybox/build.sh"), "-static", s.work("busybox")},
		"rootfs":  {filepath.Join(s.module, "images", "rootfs.sh"), s.work("rootfs")},
	} {
		if exists(s.work(name)) {
			continue
		}
		if err := s.tell(ctx, s.module, "bash", script...); err != nil {
			return err
		}
	}
	fmt.Println("building the test images")
	return images.Build(s.imageTree(), images.Inputs{
		Programs: s.work(""), RootFS: s.work("rootfs"), Suite: suite,
		Pause: filepath.Join(s.product, "pause"), CoreDNS: filepath.Join(s.product, "coredns"),
		Etcd: filepath.Join(s.product, "etcd"),
	})
}

func (s settings) buildGo(ctx context.Context, path string, b goBinary) error {
	if exists(path) {
		return nil
	}
	// "go test -c" and "go build" both take -o after the verb; the package is the last argument.
	args := append([]string{b.args[0], "-trimpath", "-o", path}, b.args[1:]...)
	return s.tell(ctx, s.module, "go", args...)
}

// buildContainerd builds the runtime that the image-volume specs need: Debian's may be older.
func (s settings) buildContainerd(ctx context.Context) error {
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		if exists(s.bin(name)) {
			continue
		}
		err := s.tell(ctx, s.module, "env", "GOBIN="+s.bin(""), "go", "install", "-trimpath",
			"-tags=no_btrfs,no_devmapper,no_zfs,no_tracing",
			"-ldflags=-s -w -X github.com/containerd/containerd/v2/version.Version="+containerdVersion,
			"github.com/containerd/containerd/v2/cmd/"+name+"@v"+containerdVersion)
		if err != nil {
			return err
		}
	}
	return nil
}

// suiteImages is the directory of the suite's test images, which carry a few data files.
func (s settings) suiteImages(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "k8s.io/kubernetes/test/images/agnhost")
	cmd.Dir, cmd.Stderr = s.module, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the suite's test images: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// tell runs a build step, saying which.
func (s settings) tell(ctx context.Context, dir, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	fmt.Println("building:", args[len(args)-1])
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
