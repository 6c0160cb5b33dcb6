package assemble

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/eventratelimit"
	"bonsai/pkg/apiserver/admission/imagepolicywebhook"
	"bonsai/pkg/apiserver/admission/podnodeselector"
	"bonsai/pkg/apiserver/admission/podsecurity"
	"bonsai/pkg/apiserver/admission/podtolerationrestriction"
	"bonsai/pkg/apiserver/admission/resourcequota"
	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/docbounds"
)

// configGroup is the version of the configurations of admission plug-ins.
const configGroup = "apiserver.config.k8s.io/v1"

// AdmissionConfiguration is what --admission-control-config-file says of single plug-ins.
type AdmissionConfiguration struct {
	// MutatingWebhooks and ValidatingWebhooks are the credentials that webhooks are shown.
	MutatingWebhooks, ValidatingWebhooks webhook.Directory
	// Manifests are directories with webhooks and policies of plug-ins, by the plug-ins' names.
	Manifests map[string]string
	// Limited is what nothing may be used of without a quota.
	Limited []resourcequota.Limited
	// PodSecurity is what holds where namespaces do not say it.
	PodSecurity podsecurity.Configuration
	// ImagePolicy is the webhook that is asked about images, EventLimits bound events: their plug-ins need them.
	ImagePolicy *imagepolicywebhook.Hook
	EventLimits *eventratelimit.Configuration
	// NodeSelectors and Tolerations are for pods whose namespaces have no annotation for them; nil: there are none.
	NodeSelectors *podnodeselector.Configuration
	Tolerations   *podtolerationrestriction.Configuration
}

// complete reports which enabled plug-ins lack the configuration without which they would let everything through.
func (c *AdmissionConfiguration) complete(enabled []string) error {
	var errs []error
	for _, p := range []struct {
		name    string
		missing bool
	}{{"ImagePolicyWebhook", c.ImagePolicy == nil}, {"EventRateLimit", c.EventLimits == nil}} {
		if p.missing && slices.Contains(enabled, p.name) {
			errs = append(errs, fmt.Errorf("the admission plug-in %s is enabled and needs a configuration in the file of --admission-control-config-file", p.name))
		}
	}
	return errors.Join(errs...)
}

// admissionConfiguration is the file (AdmissionConfiguration of apiserver.config.k8s.io/v1).
type admissionConfiguration struct {
	metav1.TypeMeta
	Plugins []pluginConfiguration `json:"plugins"`
}

// pluginConfiguration is of one plug-in: in the file itself, or in another one, whose path counts from the file's
// directory.
type pluginConfiguration struct {
	Name          string          `json:"name"`
	Path          string          `json:"path"`
	Configuration json.RawMessage `json:"configuration"`
}

type webhookConfiguration struct {
	metav1.TypeMeta
	KubeConfigFile     string `json:"kubeConfigFile"`
	StaticManifestsDir string `json:"staticManifestsDir"`
}

// policyConfiguration is that of ValidatingAdmissionPolicy and MutatingAdmissionPolicy.
type policyConfiguration struct {
	metav1.TypeMeta
	StaticManifestsDir string `json:"staticManifestsDir"`
}

type quotaConfiguration struct {
	metav1.TypeMeta
	LimitedResources []resourcequota.Limited `json:"limitedResources"`
}

// LoadAdmissionConfiguration reads the file strictly; "" is none. Errors name the file and the field.
func LoadAdmissionConfiguration(path string) (*AdmissionConfiguration, error) {
	out := &AdmissionConfiguration{}
	if path == "" {
		return out, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--admission-control-config-file: %w", err)
	}
	var all admissionConfiguration
	if err := readConfiguration(text, "AdmissionConfiguration", &all, &all.TypeMeta); err != nil {
		return nil, fmt.Errorf("--admission-control-config-file %s: %w", path, err)
	}
	seen := map[string]bool{}
	for i := range all.Plugins {
		p := &all.Plugins[i]
		fail := func(err error) error {
			return fmt.Errorf("--admission-control-config-file %s: plugins[%d] (%s): %w", path, i, p.Name, err)
		}
		if seen[p.Name] {
			return nil, fail(errors.New("it is configured twice"))
		}
		seen[p.Name] = true
		if err := out.read(p, filepath.Dir(path)); err != nil {
			return nil, fail(err)
		}
	}
	return out, nil
}

// read reads what is said of one plug-in; dir is what paths count from.
func (c *AdmissionConfiguration) read(p *pluginConfiguration, dir string) error {
	if !slices.Contains(admission.Known(), p.Name) {
		return errors.New("there is no such plug-in")
	}
	doc, from := []byte(p.Configuration), "configuration"
	if len(doc) == 0 || string(doc) == "null" {
		if p.Path == "" {
			return nil
		}
		from = p.Path
		if !filepath.IsAbs(from) {
			from = filepath.Join(dir, from)
		}
		var err error
		if doc, err = os.ReadFile(from); err != nil {
			return fmt.Errorf("path: %w", err)
		}
	}
	var err error
	switch p.Name {
	case "MutatingAdmissionWebhook":
		c.MutatingWebhooks, err = c.readWebhooks(p.Name, doc)
	case "ValidatingAdmissionWebhook":
		c.ValidatingWebhooks, err = c.readWebhooks(p.Name, doc)
	case "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy":
		var policies policyConfiguration
		if err = readConfiguration(doc, p.Name+"Configuration", &policies, &policies.TypeMeta); err == nil {
			err = c.setManifests(p.Name, policies.StaticManifestsDir)
		}
	case "ResourceQuota":
		c.Limited, err = readLimited(doc)
	case "PodSecurity":
		if err = bounded(doc); err == nil {
			c.PodSecurity, err = podsecurity.ReadConfiguration(doc)
		}
	case "ImagePolicyWebhook":
		c.ImagePolicy, err = readImagePolicy(doc)
	case "EventRateLimit":
		c.EventLimits = &eventratelimit.Configuration{}
		if err = readVersioned(doc, eventratelimit.APIVersion, eventratelimit.Kind, c.EventLimits,
			&c.EventLimits.TypeMeta); err == nil {
			err = c.EventLimits.Validate()
		}
	case "PodNodeSelector":
		if err = bounded(doc); err == nil {
			c.NodeSelectors, err = podnodeselector.ReadConfiguration(doc)
		}
	case "PodTolerationRestriction":
		c.Tolerations = &podtolerationrestriction.Configuration{}
		if err = readVersioned(doc, podtolerationrestriction.APIVersion, podtolerationrestriction.Kind, c.Tolerations,
			&c.Tolerations.TypeMeta); err == nil {
			err = c.Tolerations.Validate()
		}
	default:
		return errors.New("the plug-in takes no configuration")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// setManifests sets the directory of a plug-in's manifests; "" is none. Errors are in Kubernetes' words.
func (c *AdmissionConfiguration) setManifests(plugin, dir string) error {
	if dir == "" {
		return nil
	}
	invalid := func(why string) error {
		return field.Invalid(field.NewPath("staticManifestsDir"), dir, why)
	}
	if !filepath.IsAbs(dir) {
		return invalid("must be an absolute file path")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return invalid("unable to read: " + err.Error())
	}
	if !info.IsDir() {
		return invalid("must be a directory")
	}
	if c.Manifests == nil {
		c.Manifests = map[string]string{}
	}
	c.Manifests[plugin] = dir
	return nil
}

// readWebhooks reads the configuration of a plug-in of webhooks, and returns the credentials that they are shown.
func (c *AdmissionConfiguration) readWebhooks(plugin string, doc []byte) (webhook.Directory, error) {
	var of webhookConfiguration
	if err := readConfiguration(doc, "WebhookAdmissionConfiguration", &of, &of.TypeMeta); err != nil {
		return nil, err
	}
	if err := c.setManifests(plugin, of.StaticManifestsDir); err != nil {
		return nil, err
	}
	if of.KubeConfigFile == "" {
		return nil, nil
	}
	if !filepath.IsAbs(of.KubeConfigFile) {
		return nil, fmt.Errorf("kubeConfigFile must be an absolute path, got %q", of.KubeConfigFile)
	}
	found, err := webhook.LoadDirectory(of.KubeConfigFile)
	if err != nil {
		return nil, fmt.Errorf("kubeConfigFile: %w", err)
	}
	return found, nil
}

func readImagePolicy(doc []byte) (*imagepolicywebhook.Hook, error) {
	if err := bounded(doc); err != nil {
		return nil, err
	}
	c, err := imagepolicywebhook.ReadConfiguration(doc)
	if err != nil {
		return nil, err
	}
	return imagepolicywebhook.NewHook(c)
}

func readLimited(doc []byte) ([]resourcequota.Limited, error) {
	var c quotaConfiguration
	if err := readConfiguration(doc, "ResourceQuotaConfiguration", &c, &c.TypeMeta); err != nil {
		return nil, err
	}
	for i := range c.LimitedResources {
		if c.LimitedResources[i].Resource == "" {
			return nil, fmt.Errorf("limitedResources[%d].resource: Required value", i)
		}
	}
	return c.LimitedResources, nil
}

// maxConfiguration bounds a configuration, in bytes.
const maxConfiguration = 1 << 20

// bounded refuses a configuration that would become huge when it is decoded.
func bounded(text []byte) error {
	return docbounds.YAML(text, docbounds.Bounds{Bytes: maxConfiguration, Values: 10_000, Depth: 50})
}

// readConfiguration reads a document of a kind of configGroup into out, whose kind is named.
func readConfiguration(text []byte, kind string, out any, named *metav1.TypeMeta) error {
	return readVersioned(text, configGroup, kind, out, named)
}

// readVersioned reads a document of a kind and version into out, whose kind is named.
func readVersioned(text []byte, version, kind string, out any, named *metav1.TypeMeta) error {
	if err := bounded(text); err != nil {
		return err
	}
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := sigsjson.UnmarshalStrict(doc, out)
	if err != nil {
		return err
	}
	if named.APIVersion != version || named.Kind != kind {
		return fmt.Errorf("it must be of kind %s of %s, and is of kind %q of %q", kind, version, named.Kind,
			named.APIVersion)
	}
	return errors.Join(strict...)
}
