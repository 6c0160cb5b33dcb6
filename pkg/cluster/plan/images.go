package plan

// The local images. Each node serves their registry, "localhost", to its own containerd, from the files in bin/images.
const (
	// The local images. Each node serves their registry, "localhost", to its own containerd, from the files in
	// bin/images.
	PauseImage   = "localhost/pause:1.0"
	BusyboxImage = "localhost/busybox:1.0"
	CoreDNSImage = "localhost/coredns:1.14.3"

	MetricsServerImage = "localhost/metrics-server:0.9.0"
	RegistryImage      = "localhost/registry:3.1.2"
	TraefikImage       = "localhost/traefik:3.6.0"
)
