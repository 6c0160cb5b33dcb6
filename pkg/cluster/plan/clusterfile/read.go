package clusterfile

import (
	"bytes"
	_ "embed"
	"errors"
	"io"

	"bonsai/pkg/cluster/plan"

	"go.yaml.in/yaml/v3"
)

// Default is a configuration file with the defaults, and a comment for each field.
//
//go:embed default.yaml
var Default string

// The one version of configuration files.
const (
	fileVersion = "bonsai.io/v1alpha1"
	fileKind    = "Cluster"
)

// file is a configuration file. The comments in Default explain the fields; a field that is left out has the value that
// it has there.
type file struct {
	APIVersion      string                       `yaml:"apiVersion"`
	Kind            string                       `yaml:"kind"`
	Name            string                       `yaml:"name"`
	ControlPlanes   int                          `yaml:"controlPlanes"`
	Nodes           []fileNode                   `yaml:"nodes"`
	Networking      fileNetworking               `yaml:"networking"`
	PortMappings    []filePortMapping            `yaml:"portMappings"`
	EncryptSecrets  *bool                        `yaml:"encryptSecrets"`
	Traces          *bool                        `yaml:"traces"`
	RegistryMirrors []fileMirror                 `yaml:"registryMirrors"`
	OCIRuntime      string                       `yaml:"ociRuntime"`
	Programs        string                       `yaml:"programs"`
	FeatureGates    map[string]bool              `yaml:"featureGates"`
	ComponentFlags  map[string]map[string]string `yaml:"componentFlags"`
	Addons          map[string]bool              `yaml:"addons"`
	KubeconfigMode  string                       `yaml:"kubeconfigMode"`
}

// fileNode is one node. Its place in the list is its number.
type fileNode struct {
	Labels map[string]string `yaml:"labels"`
	Taints []fileTaint       `yaml:"taints"`
	Mounts []fileMount       `yaml:"mounts"`
}

// fileTaint is a taint of a node, as in the API.
type fileTaint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
	Effect string `yaml:"effect"`
}

// fileMount has the fields of plan.Mount, so that one converts to the other.
type fileMount struct {
	HostPath string `yaml:"hostPath"`
	NodePath string `yaml:"nodePath"`
	ReadOnly bool   `yaml:"readOnly"`
}

// fileMirror has the fields of plan.Mirror, in the same way.
type fileMirror struct {
	Registry string `yaml:"registry"`
	URL      string `yaml:"url"`
}

// filePortMapping is a published node port.
type filePortMapping struct {
	ListenAddress string `yaml:"listenAddress"`
	HostPort      int    `yaml:"hostPort"`
	NodePort      int    `yaml:"nodePort"`
	Protocol      string `yaml:"protocol"`
}

// fileNetworking has the settings of the cluster's networks. Egress is a pointer because its default is true.
type fileNetworking struct {
	IPFamily      string `yaml:"ipFamily"`
	NodeSubnet    string `yaml:"nodeSubnet"`
	PodSubnet     string `yaml:"podSubnet"`
	ServiceSubnet string `yaml:"serviceSubnet"`
	APIPort       int    `yaml:"apiPort"`
	Egress        *bool  `yaml:"egress"`
	Advertise     string `yaml:"advertiseAddress"`
	Endpoint      string `yaml:"controlPlaneEndpoint"`
}

// Read returns c with everything that a configuration file says of a cluster, and the defaults for everything that it
// leaves out; only the name, the subnets, the port and the encryption that it leaves out remain c's. So the file has a
// field for each choice of plan.Config. The error has all problems, each with its line and field. An unknown field is a
// problem, because it may be a misspelled one.
func Read(data []byte, c plan.Config) (plan.Config, error) {
	var f file
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return c, plainYAMLError(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return c, errors.New("there must be one document in the file and no more")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return c, plainYAMLError(err)
	}
	p := &problems{root: &root}
	return f.config(c, p), errors.Join(p.errs...)
}
