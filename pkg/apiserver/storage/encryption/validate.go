package encryption

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Sizes of keys, in bytes.
var (
	aesKeySizes = []int{16, 24, 32}
	boxKeySizes = []int{32}
)

// notREST are resources that are stored and not served. Only wildcards encrypt them.
var notREST = []string{"serviceipallocations", "servicenodeportallocations", "apiserveripinfo"}

// validate returns what is wrong with the configuration, in Kubernetes' words. No error has a key in it.
func (c *Configuration) validate(reload bool) (errs field.ErrorList) {
	root := field.NewPath("resources")
	if len(c.Resources) == 0 {
		return append(errs, field.Required(root, "at least one resources is required"))
	}
	names := sets.New[string]()
	for i := range c.Resources {
		r, at := &c.Resources[i], root.Index(i)
		resources, providers := at.Child("resources"), at.Child("providers")
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(resources, fmt.Sprintf("at least one %s is required", resources)))
		}
		if len(r.Providers) == 0 {
			errs = append(errs, field.Required(providers, fmt.Sprintf("at least one %s is required", providers)))
		}
		errs = append(errs, validateResources(r.Resources, resources)...)
		for j := range r.Providers {
			errs = append(errs, r.Providers[j].validate(providers.Index(j), names)...)
		}
	}
	return errs
}

// validateResources checks the names of one list of resources.
func validateResources(resources []string, at *field.Path) (errs field.ErrorList) {
	count := map[schema.GroupResource]bool{}
	groups := map[string]bool{}
	twice := false
	for i, name := range resources {
		path := at.Index(i)
		fail := func(detail string) { errs = append(errs, field.Invalid(path, name, detail)) }
		gr := schema.ParseGroupResource(name)
		switch {
		case strings.ToLower(name) != name:
			fail("resource name should not contain capital letters")
			continue
		case gr.Group == "events.k8s.io":
			fail("'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file")
			continue
		case gr.Group == "extensions":
			fail("'extensions' group has been removed and cannot be used for encryption")
			continue
		case name == "*":
			fail("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources")
			continue
		case gr.Group == "" && slices.Contains(notREST, gr.Resource):
			fail("resources which do not have REST API/s cannot be encrypted")
			continue
		case gr.Resource != "*" && gr.Group == "*":
			fail("encrypting the same resource across groups is not supported")
			continue
		}
		twice = twice || count[gr]
		count[gr] = true
		if gr.Resource == "*" {
			groups[gr.Group] = true
		}
	}
	if twice {
		errs = append(errs, field.Invalid(at, resources, "the same resource cannot be specified multiple times"))
	}
	if slices.ContainsFunc(resources, func(name string) bool {
		gr := schema.ParseGroupResource(name)
		return groups["*"] && gr.Group != "*" || groups[gr.Group] && gr.Resource != "*"
	}) {
		errs = append(errs, field.Invalid(at, resources,
			"using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"))
	}
	return errs
}

// validate checks one provider. names are those of the KMS providers so far.
func (p *ProviderConfiguration) validate(at *field.Path, names sets.Set[string]) (errs field.ErrorList) {
	n := 0
	for _, set := range []bool{p.AESGCM != nil, p.AESCBC != nil, p.Secretbox != nil, p.Identity != nil, p.KMS != nil} {
		if set {
			n++
		}
	}
	switch {
	case n == 0:
		return field.ErrorList{field.Invalid(at, "",
			"provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity")}
	case n > 1:
		// without the value, which has keys in it
		return field.ErrorList{field.Invalid(at, "",
			"more than one provider specified in a single element, should split into different list elements")}
	case p.KMS != nil:
		return p.KMS.validate(at.Child("kms"), names)
	case p.AESGCM != nil:
		return validateKeys(p.AESGCM.Keys, at.Child("aesgcm").Child("keys"), aesKeySizes)
	case p.AESCBC != nil:
		return validateKeys(p.AESCBC.Keys, at.Child("aescbc").Child("keys"), aesKeySizes)
	case p.Secretbox != nil:
		return validateKeys(p.Secretbox.Keys, at.Child("secretbox").Child("keys"), boxKeySizes)
	}
	return nil
}

func validateKeys(keys []Key, at *field.Path, sizes []int) (errs field.ErrorList) {
	if len(keys) == 0 {
		return field.ErrorList{field.Required(at, "at least one keys is required")}
	}
	for i, k := range keys {
		errs = append(errs, validateKey(k, at.Index(i), sizes)...)
	}
	return errs
}

func validateKey(k Key, at *field.Path, sizes []int) (errs field.ErrorList) {
	if k.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "name is a mandatory field for a key"))
	}
	if k.Secret == "" {
		return append(errs, field.Required(at.Child("secret"), "secret is a mandatory field for a key"))
	}
	secret, err := base64.StdEncoding.DecodeString(k.Secret)
	if err != nil {
		return append(errs, field.Invalid(at.Child("secret"), "REDACTED", "secrets must be base64 encoded"))
	}
	if !slices.Contains(sizes, len(secret)) {
		errs = append(errs, field.Invalid(at.Child("secret"), "REDACTED",
			fmt.Sprintf("secret is not of the expected length, got %d, expected one of %v", len(secret), sizes)))
	}
	return errs
}

func (k *KMSConfiguration) validate(at *field.Path, names sets.Set[string]) (errs field.ErrorList) {
	switch name := at.Child("name"); {
	case k.Name == "":
		errs = append(errs, field.Required(name, "name is a mandatory field for a provider"))
	case k.APIVersion != "v1" && strings.Contains(k.Name, ":"):
		errs = append(errs, field.Invalid(name, k.Name,
			fmt.Sprintf("invalid KMS provider name %s, must not contain ':'", k.Name)))
	case names.Has(k.Name):
		errs = append(errs, field.Invalid(name, k.Name,
			fmt.Sprintf("duplicate KMS provider name %s, names must be unique", k.Name)))
	}
	names.Insert(k.Name)
	if k.Timeout.Duration <= 0 {
		errs = append(errs, field.Invalid(at.Child("timeout"), k.Timeout, "timeout should be a positive value"))
	}
	errs = append(errs, k.validateEndpoint(at.Child("endpoint"))...)
	if k.APIVersion == "v1" && k.CacheSize != nil && *k.CacheSize == 0 {
		errs = append(errs, field.Invalid(at.Child("cachesize"), *k.CacheSize,
			"cachesize should be a positive value, or negative to disable"))
	}
	if k.APIVersion != "v1" && k.CacheSize != nil {
		errs = append(errs, field.Invalid(at.Child("cachesize"), *k.CacheSize,
			"cachesize is not supported in v2"))
	}
	if k.APIVersion != "v1" && k.APIVersion != "v2" {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), k.APIVersion,
			fmt.Sprintf("unsupported apiVersion %s for KMS provider, only v1 and v2 are supported", "apiVersion")))
	}
	return errs
}

func (k *KMSConfiguration) validateEndpoint(at *field.Path) field.ErrorList {
	if k.Endpoint == "" {
		return field.ErrorList{field.Invalid(at, "", "endpoint is a mandatory field for a kms")}
	}
	u, err := url.Parse(k.Endpoint)
	if err != nil {
		return field.ErrorList{field.Invalid(at, k.Endpoint,
			fmt.Sprintf("invalid endpoint for kms provider, error: %v", err))}
	}
	if u.Scheme != "unix" {
		return field.ErrorList{field.Invalid(at, k.Endpoint,
			fmt.Sprintf("unsupported scheme %q for KMS provider, only unix is supported", u.Scheme))}
	}
	return nil
}
