// Package credentialprovider asks programs for credentials with which images are pulled
// (--image-credential-provider-config): each is run for the images that it is for, gets a CredentialProviderRequest on
// its standard input and answers on its standard output. What it answers is kept as long as it says.
//
// The contract: https://kubernetes.io/docs/tasks/administer-cluster/kubelet-credential-provider/.
package credentialprovider

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletconfig "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"
)

// group is that of requests and answers; its versions have the same fields, except tokens, which only v1 has.
const group = "credentialprovider.kubelet.k8s.io/"

// ReadConfig reads the configuration in a file, or in all JSON and YAML files of a directory, in the order of their
// names.
func ReadConfig(path string) ([]kubeletconfig.CredentialProvider, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
	} else if info.IsDir() {
		entries, err := os.ReadDir(path) // in the order of names
		if err != nil {
			return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
		}
		files = nil
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, ext) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("--image-credential-provider-config: there is no configuration in %s", path)
		}
	}
	var all []kubeletconfig.CredentialProvider
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
		}
		c := &kubeletconfig.CredentialProviderConfig{}
		if err := yaml.UnmarshalStrict(data, c); err != nil {
			return nil, fmt.Errorf("--image-credential-provider-config: %s: %w", f, err)
		}
		version, ok := strings.CutPrefix(c.APIVersion, "kubelet.config.k8s.io/")
		if c.Kind != "CredentialProviderConfig" || !ok ||
			!slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, version) {
			return nil, fmt.Errorf("--image-credential-provider-config: %s has %s %s, not kubelet.config.k8s.io/v1 CredentialProviderConfig", f, c.APIVersion, c.Kind)
		}
		all = append(all, c.Providers...)
	}
	if err := check(all); err != nil {
		return nil, fmt.Errorf("--image-credential-provider-config: %w", err)
	}
	return all, nil
}

// check names all that is wrong with the providers.
func check(all []kubeletconfig.CredentialProvider) error {
	if len(all) == 0 {
		return errors.New("providers: at least 1 item in plugins is required")
	}
	var errs []error
	seen := map[string]bool{}
	for i := range all {
		p := &all[i]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("provider %q: "+format, append([]any{p.Name}, args...)...))
		}
		switch {
		case p.Name == "" || p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/ "):
			bad("the name must be that of a file: not empty, '.' or '..', without '/' and spaces")
		case seen[p.Name]:
			bad("provider name must be unique")
		}
		seen[p.Name] = true
		if version, ok := strings.CutPrefix(p.APIVersion,
			group); !ok || !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, version) {
			bad("apiVersion %q is not one of %[3]sv1, %[3]sv1beta1, %[3]sv1alpha1", p.APIVersion, group)
		}
		if len(p.MatchImages) == 0 {
			bad("matchImages: at least 1 item is required")
		}
		for _, m := range p.MatchImages {
			if _, err := filepath.Match(m, ""); err != nil || m == "" {
				bad("matchImages: %q is no pattern", m)
			}
		}
		if d := p.DefaultCacheDuration; d == nil || d.Duration < 0 {
			bad("defaultCacheDuration is required, and must not be negative")
		}
		checkToken(p, bad)
	}
	return errors.Join(errs...)
}

func checkToken(p *kubeletconfig.CredentialProvider, bad func(string, ...any)) {
	t := p.TokenAttributes
	if t == nil {
		return
	}
	if p.APIVersion != group+"v1" {
		bad("tokenAttributes is only supported for %sv1", group)
	}
	if t.ServiceAccountTokenAudience == "" {
		bad("tokenAttributes.serviceAccountTokenAudience is required")
	}
	if t.CacheType != kubeletconfig.TokenServiceAccountTokenCacheType &&
		t.CacheType != kubeletconfig.ServiceAccountServiceAccountTokenCacheType {
		bad("tokenAttributes.cacheType must be ServiceAccount or Token")
	}
	if t.RequireServiceAccount == nil {
		bad("tokenAttributes.requireServiceAccount is required")
	} else if !*t.RequireServiceAccount && len(t.RequiredServiceAccountAnnotationKeys) > 0 {
		bad("tokenAttributes.requireServiceAccount must be true with requiredServiceAccountAnnotationKeys")
	}
	seen := map[string]bool{}
	for _, key := range slices.Concat(t.RequiredServiceAccountAnnotationKeys, t.OptionalServiceAccountAnnotationKeys) {
		if msgs := validation.IsQualifiedName(strings.ToLower(key)); len(msgs) > 0 || seen[key] {
			bad("tokenAttributes: the annotation key %q must be a qualified name, and be there once", key)
		}
		seen[key] = true
	}
}
