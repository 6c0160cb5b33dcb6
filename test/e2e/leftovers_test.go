package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// leftovers lists everything on the machine that belongs to a cluster: processes, mounts, namespaces, links, packet
// rules, routes and cgroups.
func leftovers() ([]string, error) {
	var found []string
	add := func(kind string, lines []string, mine func(string) bool) {
		for _, line := range lines {
			if line = strings.TrimSpace(line); line != "" && mine(line) {
				found = append(found, fmt.Sprintf("%s: %s", kind, line))
			}
		}
	}
	mentions := func(words ...string) func(string) bool {
		return func(line string) bool {
			for _, w := range words {
				if strings.Contains(line, w) {
					return true
				}
			}
			return false
		}
	}
	processes, err := commandLines()
	if err != nil {
		return nil, err
	}
	add("process", processes,
		mentions("bonsai supervise", "bonsai node-", "bonsai-e2e-", "containerd-shim-runc-v2 -namespace k8s.io -id",
			"-address /run/containerd/containerd.sock"))
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	// A disk of the user's, with the programs on it, may be mounted at a directory called bonsai.
	add("mount", strings.Split(string(mounts), "\n"), mentions("bonsai-", "/run/containerd", "kubelet"))
	for _, q := range []struct {
		kind, program string
		args          []string
		mine          func(string) bool
	}{
		{"network namespace", "ip", []string{"netns"}, mentions("bonsai", "cni-")},
		{"link", "ip", []string{"-o", "link"}, mentions("bonsai", "cni0")},
		{"route", "ip", []string{"route", "show", "table", "all"}, mentions("bonsai-", "unreachable 10.")},
		{"nft table", "nft", []string{"list", "tables"}, mentions("bonsai", "kube-proxy")},
	} {
		out, err := exec.Command(q.program, q.args...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s %v: %w: %s", q.program, q.args, err, out)
		}
		add(q.kind, strings.Split(string(out), "\n"), q.mine)
	}
	cgroups, err := cgroupsCalled("bonsai*")
	if err != nil {
		return nil, err
	}
	pods, err := filepath.Glob("/sys/fs/cgroup/*/kubepods*")
	if err != nil {
		return nil, err
	}
	unified, err := filepath.Glob("/sys/fs/cgroup/kubepods*")
	if err != nil {
		return nil, err
	}
	add("cgroup", slices.Concat(cgroups, pods, unified), func(string) bool { return true })
	return found, nil
}

// cgroupsCalled returns the cgroups whose name matches: at the roots of the hierarchies, and on v2 also where systemd
// delegates them, in a scope or in a service.
func cgroupsCalled(pattern string) ([]string, error) {
	var found []string
	for _, above := range []string{"", "*", "*/*.scope", "*/*/*.service"} {
		more, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", above, pattern))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// commandLines returns the command line of every process but this one.
func commandLines() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		lines = append(lines, strings.ReplaceAll(string(data), "\x00", " "))
	}
	return lines, nil
}
