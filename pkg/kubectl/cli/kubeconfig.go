package cli

import (
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// maxSearched bounds the size in bytes of a kubeconfig in which a mistake is looked for.
	maxSearched = 1 << 20
	// maxDepth bounds how many levels deep it is looked for; what a kubeconfig has ends at the eighth.
	maxDepth = 12
)

// Kubeconfig says where the kubeconfig is read from and written to, as client-go does, and names the line of a mistake
// in a file.
type Kubeconfig struct {
	*clientcmd.ClientConfigLoadingRules
}

// Load merges the files.
func (k Kubeconfig) Load() (*clientcmdapi.Config, error) {
	config, err := k.ClientConfigLoadingRules.Load()
	if all, ok := err.(utilerrors.Aggregate); ok {
		err = k.placed(all)
	}
	return config, err
}

// GetStartingConfig returns the merged files before a change, or an empty kubeconfig if there are none.
func (k Kubeconfig) GetStartingConfig() (*clientcmdapi.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k, &clientcmd.ConfigOverrides{}).RawConfig()
	if os.IsNotExist(err) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, err
	}
	return &config, nil
}

// placed adds lines to the errors of files that cannot be read.
func (k Kubeconfig) placed(all utilerrors.Aggregate) error {
	files := k.Precedence
	if k.ExplicitPath != "" {
		files = []string{k.ExplicitPath}
	}
	var out []error
	for _, err := range all.Errors() {
		for _, file := range files {
			head := fmt.Sprintf("error loading config file %q: ", file)
			why, ok := strings.CutPrefix(err.Error(), head)
			if !ok || strings.Contains(why, "line ") {
				continue
			}
			if line := mistaken(file); line > 0 {
				err = fmt.Errorf("%sline %d: %s", head, line, why)
			}
			break
		}
		out = append(out, err)
	}
	return utilerrors.NewAggregate(out)
}

// mistaken returns the line of the value that client-go cannot load, 0 if it cannot be found.
func mistaken(file string) int {
	info, err := os.Stat(file)
	// what is no file, such as a pipe, cannot be read again
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearched {
		return 0
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		return 0
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return root.Line
	}
	head := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	line := root.Line
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Value == "apiVersion" || key.Value == "kind" {
			head.Content = append(head.Content, root.Content[i:i+2]...)
			line = key.Line
		}
		if !loads(head) {
			return line
		}
	}
	return within(root, func(part *yaml.Node) *yaml.Node {
		whole := *part
		whole.Content = append(append([]*yaml.Node{}, head.Content...), part.Content...)
		return &whole
	}, maxDepth)
}

// within is the line of the part of n that cannot be loaded, alone in the document that around makes of it: the
// innermost one, at most depth levels below n.
func within(n *yaml.Node, around func(*yaml.Node) *yaml.Node, depth int) int {
	each := map[yaml.Kind]int{yaml.MappingNode: 2, yaml.SequenceNode: 1}[n.Kind]
	if each == 0 || len(n.Content) == 0 || depth == 0 {
		return n.Line
	}
	with := func(children ...*yaml.Node) *yaml.Node {
		some := *n
		some.Content = children
		return around(&some)
	}
	children := n.Content
	for len(children) > each { // halves, so that a long list takes no longer than to read it a few times
		middle := len(children) / each / 2 * each
		switch {
		case !loads(with(children[:middle]...)):
			children = children[:middle]
		case !loads(with(children[middle:]...)):
			children = children[middle:]
		default: // only both together are wrong
			return n.Line
		}
	}
	return within(children[each-1], func(child *yaml.Node) *yaml.Node {
		return with(append(children[:each-1:each-1], child)...)
	}, depth-1)
}

// loads reports whether client-go takes the document.
func loads(document *yaml.Node) bool {
	data, err := yaml.Marshal(document)
	if err == nil {
		_, err = clientcmd.Load(data)
	}
	return err == nil
}
