package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// thing is something on a node that belongs to a pod, known by the pod's UID, or by the ID of a container or sandbox,
// or by an address, or by a name that only its finder can judge (owned).
type thing struct {
	kind, path       string
	uid, id, address string
	owned            bool
}

// containerInfo is what containerd knows of a container or sandbox.
type containerInfo struct {
	Labels map[string]string
	Spec   struct {
		Linux struct {
			Namespaces []struct{ Type, Path string }
		}
	}
}

func (i containerInfo) uid() string { return i.Labels["io.kubernetes.pod.uid"] }

// netns is the file name of the container's network namespace, "" for the node's own.
func (i containerInfo) netns() string {
	for _, ns := range i.Spec.Linux.Namespaces {
		if ns.Type == "network" && strings.Contains(ns.Path, "/netns/") {
			return filepath.Base(ns.Path)
		}
	}
	return ""
}

// onNode is one look at a node.
type onNode struct {
	containers map[string]containerInfo // by ID: all that the runtime has
	things     []thing
	leases     int // of containerd, each held for a request that has not ended
}

var (
	longID     = regexp.MustCompile(`[0-9a-f]{64}`)
	podUID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	podAddress = regexp.MustCompile(`\b10\.244\.\d+\.\d+\b(/\d)?`)
	serviceOf  = regexp.MustCompile(`\b` + namespace + `/(short-\d+)`)
)

// idDirectories hold one entry per container or sandbox.
var idDirectories = []string{
	"/run/containerd/io.containerd.runtime.v2.task/k8s.io", "/var/lib/containerd/io.containerd.runtime.v2.task/k8s.io",
	"/run/containerd/io.containerd.grpc.v1.cri/sandboxes", "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes",
	"/run/containerd/io.containerd.grpc.v1.cri/containers", "/var/lib/containerd/io.containerd.grpc.v1.cri/containers",
	"/var/lib/cni/results",
}

// lookAt lists what is on a node. cache keeps what containerd said of containers, which does not change.
func (c *clusterUnderTest) lookAt(ctx context.Context, node string, cache map[string]containerInfo) (*onNode, error) {
	root, err := c.root(ctx, node)
	if err != nil {
		return nil, err
	}
	n := &onNode{containers: map[string]containerInfo{}}
	n.directories(root)
	if err := n.mounts(root); err != nil {
		return nil, err
	}
	n.addresses(root)
	if err := n.shims(root); err != nil {
		return nil, err
	}
	for _, list := range []func(context.Context, *clusterUnderTest, string, string) error{n.links, n.rules,
		n.snapshots} {
		if err := list(ctx, c, node, root); err != nil {
			return nil, err
		}
	}
	// Last, so that whatever was there before belongs to one of them or to none.
	return n, n.runtime(ctx, c, node, root, cache)
}

func (n *onNode) add(kind, path string) {
	n.things = append(n.things, thing{kind: kind, path: path, uid: last(podUID, path), id: last(longID, path)})
}

func last(pattern *regexp.Regexp, s string) string {
	all := pattern.FindAllString(s, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// directories lists directories and links of pods and containers, and the cgroups.
func (n *onNode) directories(root string) {
	entries := func(kind, dir string) {
		files, _ := os.ReadDir(root + dir) // one that is not there has nothing in it
		for _, f := range files {
			n.add(kind, filepath.Join(dir, f.Name()))
		}
	}
	entries("pod directory", "/var/lib/kubelet/pods")
	entries("log directory", "/var/log/pods")
	entries("log link", "/var/log/containers")
	for _, dir := range idDirectories {
		entries("runtime's directory", dir)
	}
	groups, _ := filepath.Glob(root + "/sys/fs/cgroup/*/kubepods")
	if v2 := root + "/sys/fs/cgroup/kubepods"; len(groups) == 0 {
		groups = []string{v2}
	}
	for _, group := range groups {
		filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (podUID.MatchString(d.Name()) || longID.MatchString(d.Name())) {
				n.add("cgroup", strings.TrimPrefix(path, root))
			}
			return nil // a group may go while we look
		})
	}
}

func (n *onNode) mounts(root string) error {
	f, err := os.Open(strings.TrimSuffix(root, "root") + "mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// A network namespace's name looks like a UID; links has them.
		if fields := strings.Fields(lines.Text()); len(fields) > 4 && !strings.Contains(fields[4], "/netns/") &&
			(podUID.MatchString(fields[4]) || longID.MatchString(fields[4])) {
			n.add("mount", fields[4])
		}
	}
	return lines.Err()
}

// addresses lists what CNI's host-local has given out: a file per address whose first line is the sandbox.
func (n *onNode) addresses(root string) {
	files, _ := filepath.Glob(root + "/var/lib/cni/networks/*/10.*")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		n.things = append(n.things,
			thing{kind: "CNI address", path: strings.TrimPrefix(f, root), id: longID.FindString(string(data))})
	}
}

// shims lists the shims that run in the node: their arguments have a sandbox's ID, and they are in the PID namespace of
// its init.
func (n *onNode) shims(root string) error {
	node, err := os.Readlink(strings.TrimSuffix(root, "root") + "ns/pid")
	if err != nil {
		return err
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if !strings.Contains(line, "containerd-shim-runc-v2") || !strings.Contains(line, " -id ") {
			continue
		}
		if space, _ := os.Readlink(filepath.Join(filepath.Dir(f), "ns", "pid")); space == node {
			n.add("shim", line)
		}
	}
	return nil
}

// links counts the pods' veths on the bridge and lists the network namespaces; owned is judged when the sandboxes are
// known.
func (n *onNode) links(ctx context.Context, c *clusterUnderTest, node, root string) error {
	out, err := c.inNode(ctx, node, "ip", "-o", "link", "show", "type", "veth")
	if err != nil {
		return err
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, "master cni0") {
			n.things = append(n.things, thing{kind: "veth", path: strings.Fields(line)[1]})
		}
	}
	spaces, _ := os.ReadDir(root + "/run/netns")
	for _, ns := range spaces {
		n.things = append(n.things, thing{kind: "network namespace", path: "/run/netns/" + ns.Name()})
	}
	return nil
}

// rules lists the addresses of pods and the short pods' Services that the packet rules name.
func (n *onNode) rules(ctx context.Context, c *clusterUnderTest, node, _ string) error {
	out, err := c.inNode(ctx, node, "nft", "list", "ruleset")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, address := range podAddress.FindAllString(out, -1) {
		if !seen[address] && !strings.Contains(address, "/") {
			n.things = append(n.things, thing{kind: "packet rule", path: address, address: address})
		}
		seen[address] = true
	}
	for _, m := range serviceOf.FindAllStringSubmatch(out, -1) {
		if !seen[m[1]] {
			n.things = append(n.things, thing{kind: "packet rule of Service", path: m[1]})
		}
		seen[m[1]] = true
	}
	return nil
}

// snapshots lists the writable layers of containers, and counts the leases that hold them before their container is
// made. A containerd that is killed meanwhile leaves a lease, and with it a snapshot, which it collects itself when the
// lease ends after 24 hours.
func (n *onNode) snapshots(ctx context.Context, c *clusterUnderTest, node, root string) error {
	for _, snapshotter := range []string{"overlayfs", "native"} {
		if _, err := os.Stat(root + "/var/lib/containerd/io.containerd.snapshotter.v1." + snapshotter +
			"/metadata.db"); err != nil {
			continue
		}
		out, err := c.inNode(ctx, node, "ctr", "-n", "k8s.io", "snapshots", "--snapshotter", snapshotter, "ls")
		if err != nil {
			return err
		}
		for _, line := range strings.Split(out, "\n") {
			if fields := strings.Fields(line); len(fields) > 1 && fields[len(fields)-1] == "Active" {
				n.add("snapshot", fields[0])
			}
		}
	}
	out, err := c.inNode(ctx, node, "ctr", "-n", "k8s.io", "leases", "ls", "-q")
	n.leases = len(strings.Fields(out))
	return err
}

// runtime asks containerd for its containers, sandboxes among them, and settles what they own by name.
func (n *onNode) runtime(ctx context.Context, c *clusterUnderTest, node, _ string,
	cache map[string]containerInfo) error {
	out, err := c.inNode(ctx, node, "ctr", "-n", "k8s.io", "containers", "ls", "-q")
	if err != nil {
		return err
	}
	spaces := map[string]bool{}
	for _, id := range strings.Fields(out) {
		info, known := cache[id]
		if !known {
			data, err := c.inNode(ctx, node, "ctr", "-n", "k8s.io", "containers", "info", id)
			if err != nil {
				continue // it went meanwhile
			}
			if err := json.Unmarshal([]byte(data), &info); err != nil {
				return fmt.Errorf("containerd's words on %s: %w", id, err)
			}
			cache[id] = info
		}
		n.containers[id] = info
		n.things = append(n.things,
			thing{kind: "container or sandbox", path: info.Labels["io.kubernetes.pod.name"] + " " + id,
				uid: info.uid()})
		if ns := info.netns(); ns != "" {
			spaces[ns] = true
		}
	}
	veths, unused := 0, 0
	for i := range n.things {
		switch t := &n.things[i]; t.kind {
		case "network namespace":
			t.owned = spaces[filepath.Base(t.path)]
		case "veth":
			veths++
			t.owned = veths <= len(spaces) // which of them is too many cannot be told from here
		case "snapshot":
			if _, used := n.containers[t.id]; !used {
				unused++
			}
			t.owned = unused <= n.leases // nor which of them a lease holds
		}
	}
	return nil
}
