package images

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	suite "k8s.io/kubernetes/test/utils/image"
)

// Inputs says where the parts of the images are.
type Inputs struct {
	// Programs holds agnhost, sample-apiserver, nonewprivs, regression-issue-74839 and busybox.
	Programs string
	// RootFS is a Debian tree with the network tools that some specs call.
	RootFS string
	// Suite is the test/images directory of the suite's module: certificates and pictures.
	Suite                string
	Pause, CoreDNS, Etcd string
}

// registry is the prefix of images that specs name by themselves, and not by the suite's list of images.
const registry = "registry.k8s.io/e2e-test-images/"

// Build writes all images into a new registry tree at dir, which Finished must not call finished.
func Build(dir string, in Inputs) (err error) {
	scratch, err := os.MkdirTemp(filepath.Dir(dir), "images-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	b := builder{Inputs: in, scratch: scratch, tree: tree(filepath.Join(scratch, "tree"))}
	applets, err := exec.Command(b.program("busybox"), "--list").Output()
	if err != nil {
		return fmt.Errorf("ask busybox for its applets: %w", err)
	}
	b.applets = strings.Fields(string(applets))
	for _, step := range []func() error{b.small, b.busybox, b.debian} {
		if err := step(); err != nil {
			return err
		}
	}
	return b.tree.finish(dir)
}

type builder struct {
	Inputs
	scratch string
	tree    tree
	applets []string
}

func (b builder) program(name string) string { return filepath.Join(b.Programs, name) }

// layer builds one layer.
func (b builder) layer(fill func(*layer)) (*layer, error) {
	l := newLayer(b.scratch)
	fill(l)
	return l.done()
}

func (b builder) push(c config, layers []*layer, names ...string) error {
	for _, name := range names {
		if err := b.tree.store(name, layers, c); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// small builds the images of one program on nothing.
func (b builder) small() error {
	for _, image := range []struct {
		path, source string
		tmp          bool
		config       config
		names        []string
	}{
		{"pause", b.Pause, false, config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
			[]string{suite.GetE2EImage(suite.Pause), "registry.k8s.io/pause:3.10.1", "registry.k8s.io/pause:3.10"}},
		{"usr/local/bin/etcd", b.Etcd, true, config{}, []string{suite.GetE2EImage(suite.Etcd)}},
		{"sample-apiserver", b.program("sample-apiserver"), true, config{Entrypoint: []string{"/sample-apiserver"}},
			[]string{suite.GetE2EImage(suite.APIServer)}},
		{"regression-issue-74839", b.program("regression-issue-74839"), false,
			config{Entrypoint: []string{"/regression-issue-74839"}},
			[]string{suite.GetE2EImage(suite.RegressionIssue74839)}},
	} {
		l, err := b.layer(func(l *layer) {
			l.program(image.path, image.source, 0o755)
			if image.tmp {
				l.dir("tmp", 0o1777)
				l.dir("var/lib/etcd", 0o700)
			}
		})
		if err != nil {
			return err
		}
		if err := b.push(image.config, []*layer{l}, image.names...); err != nil {
			return err
		}
		l.remove()
	}
	return nil
}

// busybox builds the shell images.
func (b builder) busybox() error {
	shell, err := b.layer(func(l *layer) {
		l.program("bin/busybox", b.program("busybox"), 0o755)
		for _, a := range b.applets {
			if a != "busybox" {
				l.link("bin/"+a, "busybox")
			}
		}
		for _, d := range []string{"etc", "proc", "sys", "dev", "root", "home", "var", "usr/bin"} {
			l.dir(d, 0o755)
		}
		l.dir("tmp", 0o1777)
		l.link("usr/bin/env", "../../bin/busybox")
		l.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n")
		l.text("etc/group", "root:x:0:\nnobody:x:65534:\n")
	})
	if err != nil {
		return err
	}
	defer shell.remove()
	setuid, err := b.layer(func(l *layer) { l.program("usr/local/bin/nnp", b.program("nonewprivs"), 0o6755) })
	if err != nil {
		return err
	}
	defer setuid.remove()
	return errors.Join(
		b.push(config{Cmd: []string{"sh"}}, []*layer{shell}, suite.GetE2EImage(suite.BusyBox),
			registry+"busybox:1.36.1-1"),
		b.push(config{Cmd: []string{"/usr/local/bin/nnp"}}, []*layer{shell, setuid},
			suite.GetE2EImage(suite.Nonewprivs)),
	)
}
