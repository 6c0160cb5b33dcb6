package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

// options are the flags, with upstream's names. Those that the configuration file has too win over it if they are
// given.
type options struct {
	logging                                         daemon.Logging
	config, configDir, kubeconfig, hostname, nodeIP string
	bootstrapKubeconfig                             string
	credentialConfig, credentialDir                 string
	rootDir, certDir                                string
	nodeLabels                                      map[string]string
	taints, providerID, runtimeEndpoint             string
	cloudProvider                                   string
	podManifestPath, cgroupRoot, cgroupDriver       string
	clusterDNS, unsafeSysctls                       []string
	clusterDomain, tlsCert, tlsKey, clientCA        string
	resolvConf, address, healthzAddress             string
	port, healthzPort, maxPods, oomScoreAdj         int32
	registerNode, failSwapOn, serializePulls        bool
	rotateClient, rotateServing                     bool
	pressure                                        pressureOptions
	garbage                                         garbageOptions
	managers                                        managerOptions
	memory                                          memoryOptions
	fields                                          fileOptions
	lock                                            lockOptions
	quota                                           quotaOptions
	static                                          staticOptions
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	fs.StringVar(&o.config, "config", "", "The kubelet's configuration file (kubelet.config.k8s.io/v1beta1).")
	fs.StringVar(&o.configDir, "config-dir", "",
		"Path to a directory to specify drop-ins, allows the user to optionally specify additional configs to overwrite what is provided by default and in the file of --config: its files *.conf, in the order of their names.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to a kubeconfig file, specifying how to connect to the API server.")
	fs.StringVar(&o.bootstrapKubeconfig, "bootstrap-kubeconfig", "",
		"Path to a kubeconfig file for requesting the node's first client certificate, if the file of --kubeconfig does not exist or its certificate has expired. The kubelet then writes the file of --kubeconfig, with the certificate in --cert-dir.")
	fs.BoolVar(&o.rotateClient, "rotate-certificates", false,
		"Renew the client certificate by certificate signing requests before it expires.")
	fs.BoolVar(&o.rotateServing, "rotate-server-certificates", false,
		"Get the serving certificate by certificate signing requests, which somebody must approve, and renew it before it expires.")
	fs.StringVar(&o.credentialConfig, "image-credential-provider-config", "",
		"Path to a credential provider plugin config file (JSON/YAML/YML) or a directory of such files, which are merged in the order of their names.")
	fs.StringVar(&o.credentialDir, "image-credential-provider-bin-dir", "",
		"The path to the directory where credential provider plugin binaries are located.")
	fs.StringVar(&o.hostname, "hostname-override", "",
		"If non-empty, use this string as identification instead of the actual hostname.")
	fs.StringVar(&o.nodeIP, "node-ip", "",
		"IP address (or comma-separated dual-stack IP addresses) of the node. 0.0.0.0 or ::: that of the default route of the family.")
	fs.StringVar(&o.rootDir, "root-dir", "/var/lib/kubelet",
		"Directory path for managing kubelet files (volume mounts, etc).")
	fs.StringVar(&o.certDir, "cert-dir", "/var/lib/kubelet/pki", "The directory where the TLS certs are located.")
	fs.StringToStringVar(&o.nodeLabels, "node-labels", nil, "Labels to add when registering the node in the cluster.")
	fs.StringVar(&o.taints, "register-with-taints", "",
		"Register the node with the given list of taints (comma separated \"<key>=<value>:<effect>\").")
	fs.StringVar(&o.providerID, "provider-id", "",
		"Unique identifier for identifying the node in a machine database, i.e cloud provider.")
	fs.StringVar(&o.cloudProvider, "cloud-provider", "",
		"The provider for cloud services: empty for none, or external: a cloud controller manager sets the node's addresses and removes the taint that keeps pods away until then.")
	fs.StringVar(&o.runtimeEndpoint, "container-runtime-endpoint", "", "The endpoint of the container runtime service.")
	fs.StringVar(&o.podManifestPath, "pod-manifest-path", "",
		"Path to the directory containing static pod files to run, or to a single static pod file.")
	fs.StringVar(&o.cgroupRoot, "cgroup-root", "", "Optional root cgroup to use for pods.")
	fs.StringVar(&o.cgroupDriver, "cgroup-driver", "cgroupfs",
		"Driver that the kubelet uses to manipulate cgroups on the host: cgroupfs or systemd.")
	fs.StringSliceVar(&o.clusterDNS, "cluster-dns", nil, "Comma-separated list of DNS server IP addresses.")
	fs.StringSliceVar(&o.unsafeSysctls, "allowed-unsafe-sysctls", nil,
		"Comma-separated list of unsafe sysctls or unsafe sysctl patterns (ending in *) that pods may set.")
	fs.StringVar(&o.clusterDomain, "cluster-domain", "", "Domain for this cluster.")
	fs.StringVar(&o.tlsCert, "tls-cert-file", "", "File containing the x509 certificate used for serving HTTPS.")
	fs.StringVar(&o.tlsKey, "tls-private-key-file", "",
		"File containing the x509 private key matching --tls-cert-file.")
	fs.StringVar(&o.clientCA, "client-ca-file", "",
		"Requests with a client certificate signed by one of these authorities are authenticated.")
	fs.StringVar(&o.resolvConf, "resolv-conf", "/etc/resolv.conf",
		"Resolver configuration file used as the basis for the container DNS resolution configuration.")
	daemon.AddressVar(fs, &o.address, "address", "0.0.0.0", "The IP address for the kubelet to serve on.")
	fs.Int32Var(&o.port, "port", 10250, "The port for the kubelet to serve on.")
	daemon.AddressVar(fs, &o.healthzAddress, "healthz-bind-address", "127.0.0.1",
		"The IP address for the healthz server to serve on.")
	fs.Int32Var(&o.healthzPort, "healthz-port", 10248,
		"The port of the localhost healthz endpoint (set to 0 to disable).")
	fs.Int32Var(&o.maxPods, "max-pods", 110, "Number of pods that can run on this kubelet.")
	fs.Int32Var(&o.oomScoreAdj, "oom-score-adj", -999,
		"The oom_score_adj of the kubelet's process, from -1000 to 1000: how soon the kernel kills it when memory runs out.")
	fs.BoolVar(&o.registerNode, "register-node", true, "Register the node with the API server.")
	fs.BoolVar(&o.failSwapOn, "fail-swap-on", true, "Makes the kubelet fail to start if swap is enabled on the node.")
	fs.BoolVar(&o.serializePulls, "serialize-image-pulls", true, "Pull images one at a time.")
	o.pressure.addFlags(fs)
	o.garbage.addFlags(fs)
	o.managers.addFlags(fs)
	o.memory.addFlags(fs)
	o.fields.addFlags(fs)
	o.lock.addFlags(fs)
	o.quota.addFlags(fs)
	o.static.addFlags(fs)
}

// settings merges flags and configuration file and checks them. The order matters. idle must see the file alone. Flags
// come before defaults, because a default is set only where both are silent. managers takes its default from a merged
// field.
func (o *options) settings(fs *pflag.FlagSet) (*settings, error) {
	// Upstream checks the gates of the flags first, with words of its own.
	if err := featuregates.Check(o.fields.gates); err != nil {
		return nil, fmt.Errorf("failed to set feature gates from initial flags-based config: %w", err)
	}
	c, err := readConfigs(o.config, o.configDir)
	if err != nil {
		return nil, err
	}
	s := &settings{options: o, file: c, idle: idle(c), containerLogsDir: defaultContainerLogsDir,
		given: fs.Changed}
	o.mergeStrings(fs, c)
	o.mergeNumbers(fs, c)
	o.pressure.merge(fs, c)
	o.garbage.merge(fs, c)
	o.fields.merge(fs, c)
	o.quota.merge(fs, c)
	o.static.merge(fs, c)
	s.log = o.logging.Over(c.Logging, fs.Changed)
	defaultConfig(c)
	o.managers.merge(fs, c) // after what it takes for a default
	if err := o.memory.merge(fs, c); err != nil {
		return nil, err
	}
	return s, errors.Join(daemon.CheckCloudProvider(fs), s.check())
}

// An empty field in the file counts as not set, as upstream's defaulting treats it.
func (o *options) mergeStrings(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	for flag, f := range map[string]struct {
		to   *string
		from string
	}{
		"container-runtime-endpoint": {&c.ContainerRuntimeEndpoint, o.runtimeEndpoint},
		"pod-manifest-path":          {&c.StaticPodPath, o.podManifestPath},
		"cgroup-root":                {&c.CgroupRoot, o.cgroupRoot},
		"cgroup-driver":              {&c.CgroupDriver, o.cgroupDriver},
		"cluster-domain":             {&c.ClusterDomain, o.clusterDomain},
		"tls-cert-file":              {&c.TLSCertFile, o.tlsCert},
		"tls-private-key-file":       {&c.TLSPrivateKeyFile, o.tlsKey},
		"client-ca-file":             {&c.Authentication.X509.ClientCAFile, o.clientCA},
		"address":                    {&c.Address, o.address},
		"healthz-bind-address":       {&c.HealthzBindAddress, o.healthzAddress},
		"provider-id":                {&c.ProviderID, o.providerID},
	} {
		if fs.Changed(flag) || *f.to == "" {
			*f.to = f.from
		}
	}
	if fs.Changed("resolv-conf") || c.ResolverConfig == nil {
		c.ResolverConfig = &o.resolvConf
	}
	if fs.Changed("cluster-dns") {
		c.ClusterDNS = o.clusterDNS
	}
	if fs.Changed("allowed-unsafe-sysctls") {
		c.AllowedUnsafeSysctls = o.unsafeSysctls
	}
}

func (o *options) mergeNumbers(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	if fs.Changed("port") || c.Port == 0 {
		c.Port = o.port
	}
	if fs.Changed("healthz-port") || c.HealthzPort == nil {
		c.HealthzPort = &o.healthzPort
	}
	if fs.Changed("max-pods") || c.MaxPods == 0 {
		c.MaxPods = o.maxPods
	}
	if fs.Changed("oom-score-adj") {
		c.OOMScoreAdj = &o.oomScoreAdj
	}
	if fs.Changed("rotate-certificates") {
		c.RotateCertificates = o.rotateClient
	}
	if fs.Changed("rotate-server-certificates") {
		c.ServerTLSBootstrap = o.rotateServing
	}
	for flag, f := range map[string]struct {
		to   **bool
		from *bool
	}{
		"register-node":         {&c.RegisterNode, &o.registerNode},
		"fail-swap-on":          {&c.FailSwapOn, &o.failSwapOn},
		"serialize-image-pulls": {&c.SerializeImagePulls, &o.serializePulls},
	} {
		if fs.Changed(flag) || *f.to == nil {
			*f.to = f.from
		}
	}
}

// nodeName is the node's name: the host's, unless it is overridden.
func (o *options) nodeName() (string, error) {
	name := o.hostname
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("find the host's name: %w", err)
		}
	}
	if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
		return "", errors.New("the host has no name; give one with --hostname-override")
	}
	return name, nil
}

func (o *options) nodeIPs() ([]net.IP, error) {
	var out []net.IP
	for _, s := range strings.Split(o.nodeIP, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		ip := net.ParseIP(s)
		if ip == nil {
			return nil, fmt.Errorf("--node-ip: %q is no IP address", s)
		}
		out = append(out, ip)
	}
	return out, nil
}

// parseTaints reads "key=value:effect,…"; the value may be missing.
func parseTaints(text string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, s := range strings.Split(text, ",") {
		if s == "" {
			continue
		}
		left, effect, ok := strings.Cut(s, ":")
		key, value, _ := strings.Cut(left, "=")
		t := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		if !ok || key == "" || (t.Effect != corev1.TaintEffectNoSchedule &&
			t.Effect != corev1.TaintEffectPreferNoSchedule && t.Effect != corev1.TaintEffectNoExecute) {
			return nil, fmt.Errorf("--register-with-taints: %q is not of the form key=value:effect", s)
		}
		out = append(out, t)
	}
	return out, nil
}
