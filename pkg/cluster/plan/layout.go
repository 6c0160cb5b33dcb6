package plan

import "path/filepath"

// layout is where things are below the data directory.
type Layout string

func (c Config) Layout() Layout { return Layout(c.DataDir) }

func (l Layout) At(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l Layout) Config() string             { return l.At("cluster.json") }
func (l Layout) CloudConfig() string        { return l.At("cloud.yaml") }
func (l Layout) PKI(name string) string     { return l.At("pki", name) }
func (l Layout) Kubeconfig(n string) string { return l.At("kubeconfig", n+".conf") }
func (l Layout) Log(process string) string  { return l.At("logs", process+".log") }
func (l Layout) Run() string                { return l.At("run") }
func (l Layout) Socket(name string) string  { return l.At("run", name+".sock") }
func (l Layout) Lock() string               { return l.At("run", "lock") }

// nodeLog and nodeSocket are in directories that a node sees, and of these only its own.
func (l Layout) NodeLog(node, process string) string { return l.At("logs", node, process+".log") }
func (l Layout) NodeSocket(node string) string       { return l.At("run", node, "node.sock") }

// etcd is where a control plane's etcd has its data.
func (l Layout) Etcd(m Member) string { return l.At("etcd", m.Name()) }

// node is a node's own directory; parts below it: etc (configuration), lib and log (its /var/lib and /var/log).
func (l Layout) Node(name string, parts ...string) string {
	return l.At(append([]string{"nodes", name}, parts...)...)
}

func (c Config) Bin(name string) string { return filepath.Join(c.BinDir, name) }
func (c Config) Image(name string) string {
	return filepath.Join(c.BinDir, "images", name+".tar")
}

func (l Layout) Snapshots() string { return l.At("snapshots") }

func (l Layout) Snapshot(name string) string { return l.At("snapshots", name) }

// Service is the file that is there while a service manager runs the supervisor. It holds the name of the systemd
// unit, or nothing.
func (l Layout) Service() string { return l.At("run", "service") }
