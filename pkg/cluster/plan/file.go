package plan

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"bonsai/pkg/featuregates"
)

// DefaultFile is a configuration file that says what holds without one, with a comment to each field.
//
//go:embed default.yaml
var DefaultFile string

// The one version of configuration files.
const (
	fileVersion = "bonsai.io/v1alpha1"
	fileKind    = "Cluster"
)

// file is a configuration file: DefaultFile says what the fields mean. A field that is left out is as there.
type file struct {
	APIVersion      string                       `yaml:"apiVersion"`
	Kind            string                       `yaml:"kind"`
	Name            string                       `yaml:"name"`
	ControlPlanes   int                          `yaml:"controlPlanes"`
	Nodes           []fileNode                   `yaml:"nodes"`
	Networking      fileNetworking               `yaml:"networking"`
	PortMappings    []filePortMapping            `yaml:"portMappings"`
	RegistryMirrors []fileMirror                 `yaml:"registryMirrors"`
	OCIRuntime      string                       `yaml:"ociRuntime"`
	FeatureGates    map[string]bool              `yaml:"featureGates"`
	ComponentFlags  map[string]map[string]string `yaml:"componentFlags"`
	Addons          map[string]bool              `yaml:"addons"`
}

type fileNode struct {
	Labels map[string]string `yaml:"labels"`
	Taints []fileTaint       `yaml:"taints"`
	Mounts []fileMount       `yaml:"mounts"`
}

type fileTaint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
	Effect string `yaml:"effect"`
}

type fileMount struct {
	HostPath string `yaml:"hostPath"`
	NodePath string `yaml:"nodePath"`
	ReadOnly bool   `yaml:"readOnly"`
}

type fileMirror struct {
	Registry string `yaml:"registry"`
	URL      string `yaml:"url"`
}

type filePortMapping struct {
	ListenAddress string `yaml:"listenAddress"`
	HostPort      int    `yaml:"hostPort"`
	NodePort      int    `yaml:"nodePort"`
	Protocol      string `yaml:"protocol"`
}

type fileNetworking struct {
	IPFamily      string `yaml:"ipFamily"`
	NodeSubnet    string `yaml:"nodeSubnet"`
	PodSubnet     string `yaml:"podSubnet"`
	ServiceSubnet string `yaml:"serviceSubnet"`
	APIPort       int    `yaml:"apiPort"`
	Egress        *bool  `yaml:"egress"`
	Advertise     string `yaml:"advertiseAddress"`
}

// ReadFile returns c with all that a configuration file says of a cluster, and what holds without it for what it
// leaves out; only the
// name, subnets and port that it leaves out are c's. The error has all that is wrong, with line and field.
func ReadFile(data []byte, c Config) (Config, error) {
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

// config returns c as the file says, and tells p what is wrong.
func (f file) config(c Config, p *problems) Config {
	if f.APIVersion != fileVersion {
		p.add(fmt.Sprintf("must be %s, not %q", fileVersion, f.APIVersion), "apiVersion")
	}
	if f.Kind != fileKind {
		p.add(fmt.Sprintf("must be %s, not %q", fileKind, f.Kind), "kind")
	}
	if f.Name != "" {
		p.check(CheckName(f.Name), "name")
		c.Name = f.Name
	}
	c.ControlPlanes = max(1, f.ControlPlanes)
	if f.ControlPlanes < 0 || f.ControlPlanes > 1 && f.ControlPlanes != MaxControlPlanes {
		p.add(fmt.Sprintf("must be 1 or %d, not %d", MaxControlPlanes, f.ControlPlanes), "controlPlanes")
	}
	if len(f.Nodes) > MaxNodes {
		p.add(fmt.Sprintf("there may be %d nodes, not %d", MaxNodes, len(f.Nodes)), "nodes")
	}
	c.Nodes = NodesUpTo(max(1, len(f.Nodes)))
	for i, n := range f.Nodes {
		n.fill(&c.Nodes[i], p, i)
	}
	f.Networking.fill(&c, p)
	c.PortMappings = nil
	for i, m := range f.PortMappings {
		mapping := PortMapping{HostPort: m.HostPort, NodePort: m.NodePort}
		var err error
		if mapping.Address, err = netip.ParseAddr(cmp.Or(m.ListenAddress, Loopback)); err == nil {
			err = errors.Join(mapping.Check(), mapping.setProtocol(cmp.Or(m.Protocol, "TCP")))
		}
		p.check(err, "portMappings", i)
		c.PortMappings = append(c.PortMappings, mapping)
	}
	c.Mirrors = nil
	for i, m := range f.RegistryMirrors {
		c.Mirrors = append(c.Mirrors, Mirror(m))
		p.check(Mirror(m).check(), "registryMirrors", i)
	}
	c.OCIRuntime = ""
	if f.OCIRuntime != "" && f.OCIRuntime != DefaultOCIRuntime {
		p.check(checkOCIRuntime(f.OCIRuntime), "ociRuntime")
		c.OCIRuntime = f.OCIRuntime
	}
	c.FeatureGates, c.ComponentFlags = f.FeatureGates, f.ComponentFlags
	checkGates(f.FeatureGates, p)
	for component, flags := range f.ComponentFlags {
		if !slices.Contains(Components[:], component) {
			p.add(fmt.Sprintf("there is no such component (%s)", strings.Join(Components[:], ", ")), "componentFlags",
				component)
		}
		for flag := range flags {
			if flag == "" || strings.HasPrefix(flag, "-") || strings.ContainsAny(flag, "= ") {
				p.add("must be a flag without its dashes", "componentFlags", component, flag)
			}
		}
	}
	c.AddonChoices = nil
	for _, name := range slices.Sorted(maps.Keys(f.Addons)) {
		var err error
		c, err = c.WithAddon(name, f.Addons[name])
		p.check(err, "addons", name)
	}
	return c
}

// checkGates refuses the gates that the components would refuse, each in its line; then what is wrong with them
// together.
func checkGates(gates map[string]bool, p *problems) {
	before := len(p.errs)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		p.check(featuregates.CheckOne(name, gates[name]), "featureGates", name)
	}
	if len(p.errs) == before {
		p.check(featuregates.Check(gates), "featureGates")
	}
}

// fill writes what the file says of node i.
func (f fileNode) fill(n *Node, p *problems, i int) {
	n.Labels = f.Labels
	for key, value := range f.Labels {
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			p.add(strings.Join(wrong, "; "), "nodes", i, "labels", key)
		}
	}
	for j, t := range f.Taints {
		if wrong := append(validation.IsQualifiedName(t.Key),
			validation.IsValidLabelValue(t.Value)...); len(wrong) > 0 {
			p.add(strings.Join(wrong, "; "), "nodes", i, "taints", j)
		}
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			p.add(fmt.Sprintf("must be NoSchedule, PreferNoSchedule or NoExecute, not %q", t.Effect), "nodes", i,
				"taints", j, "effect")
		}
		n.Taints = append(n.Taints, t.Key+"="+t.Value+":"+t.Effect)
	}
	for j, m := range f.Mounts {
		p.check(Mount(m).check(), "nodes", i, "mounts", j)
		n.Mounts = append(n.Mounts, Mount(m))
	}
}

func (f fileNetworking) fill(c *Config, p *problems) {
	c.IPFamily = IPv4
	if f.IPFamily != "" {
		var err error
		c.IPFamily, err = ParseIPFamily(f.IPFamily)
		p.check(err, "networking", "ipFamily")
	}
	for _, s := range []struct {
		field, text string
		to          *netip.Prefix
	}{{"nodeSubnet", f.NodeSubnet, &c.NodeSubnet}, {"podSubnet", f.PodSubnet, &c.PodSubnet},
		{"serviceSubnet", f.ServiceSubnet, &c.ServiceSubnet}} {
		if s.text == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(s.text)
		if err != nil {
			p.add(fmt.Sprintf("must be a network as 10.77.0.0/24, not %q", s.text), "networking", s.field)
			continue
		}
		*s.to = prefix
	}
	for _, err := range c.Networks().Check() {
		p.check(err, "networking")
	}
	if f.APIPort < 0 || f.APIPort > 65535 {
		p.add(fmt.Sprintf("must be between 1 and 65535, not %d", f.APIPort), "networking", "apiPort")
	} else if f.APIPort > 0 {
		c.Ports.API = f.APIPort
	}
	c.Egress = f.Egress == nil || *f.Egress
	c.AdvertiseAddress = netip.Addr{}
	if f.Advertise != "" {
		var err error
		c.AdvertiseAddress, err = netip.ParseAddr(f.Advertise)
		p.check(err, "networking", "advertiseAddress")
	}
}

// problems are what is wrong with a file, each with its line and field.
type problems struct {
	root *yaml.Node
	errs []error
}

func (p *problems) check(err error, path ...any) {
	if err != nil {
		p.add(err.Error(), path...)
	}
}

// add tells of a problem at a path of names and indexes. A field that is not there has the line of what it belongs
// into.
func (p *problems) add(problem string, path ...any) {
	at, name := p.root, ""
	if len(at.Content) > 0 {
		at = at.Content[0] // of the document
	}
	for _, step := range path {
		if i, ok := step.(int); ok {
			name += fmt.Sprintf("[%d]", i)
			if at.Kind == yaml.SequenceNode && i < len(at.Content) {
				at = at.Content[i]
			}
			continue
		}
		name += "." + fmt.Sprint(step)
		for i := 0; at.Kind == yaml.MappingNode && i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				at = at.Content[i+1]
				break
			}
		}
	}
	p.errs = append(p.errs, fmt.Errorf("line %d: %s: %s", max(at.Line, 1), strings.TrimPrefix(name, "."), problem))
}

var (
	unknownField  = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType     = regexp.MustCompile(`cannot unmarshal (!!\S+) (.*) into \S+`)
	decoderPrefix = regexp.MustCompile(`^yaml: (unmarshal errors:\n *)?`)
)

// plainYAMLError says what the decoder found without its Go types.
func plainYAMLError(err error) error {
	text := decoderPrefix.ReplaceAllString(err.Error(), "")
	text = unknownField.ReplaceAllString(text, `unknown field "$1"`)
	text = wrongType.ReplaceAllString(text, "$2 ($1) is not what belongs here")
	return errors.New(strings.ReplaceAll(text, "\n  ", "\n"))
}
