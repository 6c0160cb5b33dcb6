package encryption

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/docbounds"
)

// group is the version of the configuration, and kind its kind.
const (
	group = "apiserver.config.k8s.io/v1"
	kind  = "EncryptionConfiguration"
)

// Configuration is the file of --encryption-provider-config, with defaults set.
type Configuration struct {
	metav1.TypeMeta
	Resources []ResourceConfiguration `json:"resources"`
}

// ResourceConfiguration says how some resources are encrypted: the first provider writes, all read.
type ResourceConfiguration struct {
	Resources []string                `json:"resources"`
	Providers []ProviderConfiguration `json:"providers"`
}

// ProviderConfiguration is one provider: exactly one field is set.
type ProviderConfiguration struct {
	AESGCM    *KeysConfiguration `json:"aesgcm,omitempty"`
	AESCBC    *KeysConfiguration `json:"aescbc,omitempty"`
	Secretbox *KeysConfiguration `json:"secretbox,omitempty"`
	Identity  *struct{}          `json:"identity,omitempty"`
	KMS       *KMSConfiguration  `json:"kms,omitempty"`
}

// KeysConfiguration is the keys of a provider: the first one encrypts, all decrypt.
type KeysConfiguration struct {
	Keys []Key `json:"keys"`
}

// Key is a named key.
type Key struct {
	Name string `json:"name"`
	// Secret is the key in base64.
	Secret string `json:"secret"`
}

// KMSConfiguration is a key management service, which a plug-in on this machine reaches.
type KMSConfiguration struct {
	APIVersion string           `json:"apiVersion"`
	Name       string           `json:"name"`
	CacheSize  *int32           `json:"cachesize,omitempty"`
	Endpoint   string           `json:"endpoint"`
	Timeout    *metav1.Duration `json:"timeout,omitempty"`
}

// Defaults of a KMS provider.
const (
	defaultKMSVersion = "v1"
	defaultKMSTimeout = 3 * time.Second
)

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Load reads the file strictly and checks it. hash identifies its content. reload says whether it will be followed.
// Errors name the file, or the field in it, and never a key.
func Load(path string, reload bool) (c *Configuration, hash string, err error) {
	text, err := readFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("error while parsing file: error while loading file: %w", err)
	}
	if c, err = decode(text); err != nil {
		return nil, "", fmt.Errorf("error while parsing file: error decoding encryption provider configuration file %q: %w",
			path, err)
	}
	c.setDefaults()
	if err := c.validate(reload).ToAggregate(); err != nil {
		return nil, "", fmt.Errorf("error while parsing file: encryption provider configuration file %q: %w", path, err)
	}
	return c, fileHash(text), nil
}

// readFile reads a bounded file that must have content.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("error opening encryption provider configuration file %q: %w", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("could not read contents: %w", err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("encryption provider configuration file %q is empty", path)
	}
	return text, nil
}

// fileHash identifies the content of a file.
func fileHash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// decode reads the document strictly.
func decode(text []byte) (*Configuration, error) {
	if err := docbounds.YAML(text, docbounds.Bounds{Bytes: maxFile, Values: 20_000, Depth: 20}); err != nil {
		return nil, err
	}
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var named metav1.TypeMeta
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(doc, &named); err != nil {
		return nil, err
	}
	if named.APIVersion != group || named.Kind != kind {
		return nil, fmt.Errorf("no kind %q is registered for version %q: it must be %s of %s", named.Kind,
			named.APIVersion, kind, group)
	}
	c := &Configuration{}
	strict, err := sigsjson.UnmarshalStrict(doc, c)
	if err != nil {
		return nil, err
	}
	if len(strict) > 0 {
		return nil, strictError(strict)
	}
	return c, nil
}

// strictError is the error of fields that are unknown or there twice.
func strictError(found []error) error {
	text := "strict decoding error: "
	for i, err := range found {
		if i > 0 {
			text += ", "
		}
		text += err.Error()
	}
	return fmt.Errorf("%s", text)
}

func (c *Configuration) setDefaults() {
	for i := range c.Resources {
		for j := range c.Resources[i].Providers {
			if k := c.Resources[i].Providers[j].KMS; k != nil {
				k.setDefaults()
			}
		}
	}
}

func (k *KMSConfiguration) setDefaults() {
	if k.APIVersion == "" {
		k.APIVersion = defaultKMSVersion
	}
	if k.Timeout == nil {
		k.Timeout = &metav1.Duration{Duration: defaultKMSTimeout}
	}
}
