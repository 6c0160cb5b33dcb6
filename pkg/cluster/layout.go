package cluster

import "path/filepath"

// layout is where things are below the data directory.
type layout string

func (c Config) layout() layout { return layout(c.DataDir) }

func (l layout) at(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

func (l layout) config() string             { return l.at("cluster.json") }
func (l layout) cloudConfig() string        { return l.at("cloud.yaml") }
func (l layout) pki(name string) string     { return l.at("pki", name) }
func (l layout) kubeconfig(n string) string { return l.at("kubeconfig", n+".conf") }
func (l layout) log(process string) string  { return l.at("logs", process+".log") }
func (l layout) run() string                { return l.at("run") }
func (l layout) socket(name string) string  { return l.at("run", name+".sock") }
func (l layout) lock() string               { return l.at("run", "lock") }

// nodeLog and nodeSocket are in directories that a node sees, and of these only its own.
func (l layout) nodeLog(node, process string) string { return l.at("logs", node, process+".log") }
func (l layout) nodeSocket(node string) string       { return l.at("run", node, "node.sock") }

// etcd is where a control plane's etcd has its data.
func (l layout) etcd(m member) string { return l.at("etcd", m.name()) }

// node is a node's own directory; parts below it: etc (configuration), lib and log (its /var/lib and /var/log).
func (l layout) node(name string, parts ...string) string {
	return l.at(append([]string{"nodes", name}, parts...)...)
}

func (c Config) bin(name string) string { return filepath.Join(c.BinDir, name) }
func (c Config) image(name string) string {
	return filepath.Join(c.BinDir, "images", name+".tar")
}
