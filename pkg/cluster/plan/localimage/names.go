// Package localimage names the images that Bonsai builds itself, and the registry that serves them.
package localimage

// The local images. Each node serves their registry, Registry, to its own containerd, from the files in bin/images.
const (
	Pause   = "localhost/pause:1.0"
	Busybox = "localhost/busybox:1.0"
	CoreDNS = "localhost/coredns:1.14.3"

	MetricsServer  = "localhost/metrics-server:0.9.0"
	DockerRegistry = "localhost/registry:3.1.2"
	Traefik        = "localhost/traefik:3.6.0"
)

// Registry is the registry in the names of the local images, and RegistryAddress is where a node's containerd asks for
// it: in the node itself. The registry has a loopback address of its own, so that no pod on the node's network is in
// its way. Its port is privileged, so that no user of a machine that joined a cluster can serve it other images.
const (
	Registry        = "localhost"
	RegistryAddress = "127.0.0.2:1011"
)
