// Package kuberc is the user's preferences: aliases of commands, other defaults of their flags, and which credential
// plug-ins may run. "kubectl kuberc" shows and changes them.
package kuberc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	groupV1beta1 = "kubectl.config.k8s.io/v1beta1"
	groupV1alpha = "kubectl.config.k8s.io/v1alpha1"
	kind         = "Preference"
)

// Preference is a kuberc file.
type Preference struct {
	Kind       string `json:"kind" yaml:"kind"`
	APIVersion string `json:"apiVersion" yaml:"apiVersion"`
	// Defaults are those of commands called by their own names, Aliases further names of commands.
	Defaults []Defaults `json:"defaults" yaml:"defaults"`
	Aliases  []Alias    `json:"aliases" yaml:"aliases"`
	// Policy is AllowAll ("" too), DenyAll or Allowlist, which alone has Allowed.
	Policy  string  `json:"credentialPluginPolicy,omitempty" yaml:"credentialPluginPolicy,omitempty"`
	Allowed []Entry `json:"credentialPluginAllowlist,omitempty" yaml:"credentialPluginAllowlist,omitempty"`

	place place
}

// Defaults are the options that Command ("get", "set env") has where the user does not say them.
type Defaults struct {
	Command string   `json:"command" yaml:"command"`
	Options []Option `json:"options" yaml:"options"`
}

// Alias is a name of a command: Prepended come before the user's arguments, Appended after them.
type Alias struct {
	Name      string   `json:"name" yaml:"name"`
	Command   string   `json:"command" yaml:"command"`
	Prepended []string `json:"prependArgs,omitempty" yaml:"prependArgs,omitempty"`
	Appended  []string `json:"appendArgs,omitempty" yaml:"appendArgs,omitempty"`
	Options   []Option `json:"options,omitempty" yaml:"options,omitempty"`
}

// Option is the default of a flag, called by its long name.
type Option struct {
	Name    string `json:"name" yaml:"name"`
	Default string `json:"default" yaml:"default"`
}

// Entry allows a plug-in by its command, found as a shell finds it. Name is what the field was called before.
type Entry struct {
	Name    string `json:"name,omitempty" yaml:"name,omitempty"`
	Command string `json:"command,omitempty" yaml:"command,omitempty"`
}

// GetObjectKind is here for printers.
func (p *Preference) GetObjectKind() schema.ObjectKind { return p }

// SetGroupVersionKind sets kind and apiVersion.
func (p *Preference) SetGroupVersionKind(gvk schema.GroupVersionKind) {
	p.APIVersion, p.Kind = gvk.ToAPIVersionAndKind()
}

// GroupVersionKind is what kind and apiVersion say.
func (p *Preference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(p.APIVersion, p.Kind)
}

// DeepCopyObject copies all but the place.
func (p *Preference) DeepCopyObject() runtime.Object {
	data, err := json.Marshal(p)
	out := &Preference{}
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		panic(fmt.Sprintf("a preference is plain data: %v", err))
	}
	return out
}

// validate tells what is wrong whichever command is run.
func (p *Preference) validate() error {
	names := map[string]bool{}
	for i, a := range p.Aliases {
		at := func(err error) error { return p.place.at("aliases", i, err) }
		switch {
		case !alphabetical(a.Name):
			return at(errors.New("invalid alias name, can only include alphabetical characters"))
		case names[a.Name]:
			return at(fmt.Errorf("duplicate alias name %s", a.Name))
		}
		names[a.Name] = true
	}
	switch p.Policy {
	case "", "AllowAll", "DenyAll":
		if p.Allowed != nil {
			return p.place.at("credentialPluginAllowlist", -1,
				fmt.Errorf("misconfigured credential plugin allowlist: plugin policy is %q but allowlist is non-nil",
					p.Policy))
		}
	case "Allowlist":
		if p.Allowed == nil {
			return p.place.at("credentialPluginPolicy", -1,
				errors.New(`credential plugin policy set to "Allowlist", but allowlist is unspecified`))
		}
		for i, e := range p.Allowed {
			if e == (Entry{}) {
				return p.place.at("credentialPluginAllowlist", i,
					fmt.Errorf("misconfigured credential plugin allowlist: empty allowlist entry #%d", i+1))
			}
			for _, program := range []string{e.Name, e.Command} {
				if clean := filepath.Clean(program); program != "" && clean != program {
					return p.place.at("credentialPluginAllowlist", i,
						fmt.Errorf("non-normalized file path: %q vs %q", program, clean))
				}
			}
		}
	default:
		return p.place.at("credentialPluginPolicy", -1, fmt.Errorf("unknown plugin policy: %q", p.Policy))
	}
	return nil
}

func alphabetical(s string) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return s != ""
}

// PluginPolicy is the policy in client-go's words. Of an entry with both fields both must be met: one that says two
// different programs allows none.
func (p *Preference) PluginPolicy() clientcmdapi.PluginPolicy {
	out := clientcmdapi.PluginPolicy{PolicyType: clientcmdapi.PolicyType(p.Policy)}
	for _, e := range p.Allowed {
		name := e.Command
		if name == "" {
			name = e.Name
		}
		if e.Name != "" && e.Command != "" && resolved(e.Name) != resolved(e.Command) {
			continue
		}
		out.Allowlist = append(out.Allowlist, clientcmdapi.AllowlistEntry{Command: name})
	}
	if p.Policy == "Allowlist" && len(out.Allowlist) == 0 {
		out.PolicyType = clientcmdapi.PluginPolicyDenyAll
	}
	return out
}

func resolved(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return program
	}
	return path
}
