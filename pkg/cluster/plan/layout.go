package plan

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Layout is the data directory of a cluster. Its methods are the paths of what the cluster has below it.
type Layout string

// Layout returns the paths of the cluster.
func (c Config) Layout() Layout { return Layout(c.DataDir) }

// Check returns what is wrong with the path of a new cluster's data directory.
func (l Layout) Check() error {
	if err := l.CheckPlace(); err != nil {
		return err
	}
	// These separate and quote the options of an overlay file system (mount(8)), with which images are mounted.
	if strings.ContainsAny(string(l), ":,\\") {
		return fmt.Errorf("must have no colon, comma or backslash, not %q", string(l))
	}
	return nil
}

// CheckPlace returns an error if the path can be no cluster's data directory, new or old. A relative one would be
// another directory for the supervisor, which has a working directory of its own.
func (l Layout) CheckPlace() error {
	if !filepath.IsAbs(string(l)) || filepath.Clean(string(l)) == "/" {
		return fmt.Errorf("must be an absolute path below /, not %q", string(l))
	}
	return nil
}

// At returns a path below the data directory.
func (l Layout) At(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

// Config is the file with the cluster's configuration. It is the first file of a new cluster: a directory with it is a
// cluster's.
func (l Layout) Config() string { return l.At("cluster.json") }

// Peers is the file with the control planes of all machines.
func (l Layout) Peers() string { return l.At("peers.json") }

// CloudConfig is the file with the networks of load balancers, for the controller manager.
func (l Layout) CloudConfig() string { return l.At("cloud.yaml") }

// PKI is the file of that name among the certificates and keys.
func (l Layout) PKI(name string) string { return l.At("pki", name) }

// Encryption is the file with the keys by which the API servers encrypt Secrets. KeptKeys has the keys that only
// snapshots need, and Rotation names the key of a rotation that is not finished.
func (l Layout) Encryption() string { return l.At("encryption", "config.yaml") }

// KeptKeys is beside Encryption, which explains it.
func (l Layout) KeptKeys() string { return l.At("encryption", "kept.yaml") }

// Rotation is beside Encryption, which explains it.
func (l Layout) Rotation() string { return l.At("encryption", "rotation") }

// Kubeconfig is the kubeconfig of an identity.
func (l Layout) Kubeconfig(identity string) string { return l.At("kubeconfig", identity+".conf") }

// Log is the log of a process on the host.
func (l Layout) Log(process string) string { return l.At("logs", process+".log") }

// Run is the directory of the files that mean something only while the cluster runs.
func (l Layout) Run() string { return l.At("run") }

// Backends is the file from which the balancer of a machine that has joined reads the API servers.
func (l Layout) Backends() string { return l.At("run", "balancer-backends") }

// Socket is the control socket of a process on the host.
func (l Layout) Socket(name string) string { return l.At("run", name+".sock") }

// Lock is the file that the supervisor holds locked as long as it runs.
func (l Layout) Lock() string { return l.At("run", "lock") }

// NodeLog is the log of a process on a node. Like NodeSocket it is in a directory for that node alone, the only one of
// its kind that the node sees.
func (l Layout) NodeLog(node, process string) string { return l.At("logs", node, process+".log") }

// NodeSocket is the control socket of a node's init.
func (l Layout) NodeSocket(node string) string { return l.At("run", node, "node.sock") }

// Etcd is the directory with the data of a control plane's etcd.
func (l Layout) Etcd(m Member) string { return l.At("etcd", m.Name()) }

// Release is the file with the release that last served what is in etcd. A member has no such name.
func (l Layout) Release() string { return l.At("etcd", "release") }

// Node is a node's own directory, or a path below it: etc (configuration), lib and log (its /var/lib and /var/log).
func (l Layout) Node(name string, parts ...string) string {
	return l.At(append([]string{"nodes", name}, parts...)...)
}

// Snapshots is the directory of the cluster's snapshots.
func (l Layout) Snapshots() string { return l.At("snapshots") }

// Snapshot is the directory of one snapshot.
func (l Layout) Snapshot(name string) string { return l.At("snapshots", name) }

// SnapshotKeys is the file of a snapshot that names the keys that its Secrets need.
func (l Layout) SnapshotKeys(name string) string { return l.At("snapshots", name, "encryption.yaml") }

// Service is the file that exists while a service manager runs the supervisor. It holds the name of the systemd unit,
// or nothing.
func (l Layout) Service() string { return l.At("run", "service") }

// Bin returns the path of one of the cluster's programs.
func (c Config) Bin(name string) string { return filepath.Join(c.BinDir, name) }

// Image returns the path of the archive of a local image.
func (c Config) Image(name string) string { return filepath.Join(c.BinDir, "images", name+".tar") }

// Started is an empty file: the last step of the start was taken. Each start removes it, and so does each stop.
func (l Layout) Started() string { return l.At("run", "started") }
