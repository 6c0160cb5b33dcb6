package encryption

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
)

// Provider is the provider of the cluster's file. It binds a value to its place in etcd, so nobody who can write there
// can put one Secret in the place of another.
const Provider = "aesgcm"

// keySize is the size of keys, in bytes.
const keySize = 32

// Command returns the command that does verb with the keys of this cluster, whichever clusters the machine has.
func Command(l plan.Layout, verb string) string {
	return fmt.Sprintf("bonsai --data-dir %s encryption %s", l.At(), verb)
}

// Key is a key of AES-256. Its name says when it was made, and no other cluster has a key of that name.
type Key struct {
	Name string `json:"name"`
	// Secret is the key in base64, "" where only the name is known.
	Secret string `json:"secret,omitempty"`
}

// nameFormat are the names of keys, also of those that users choose: printable, and without the colon that ends them in
// etcd's values.
var nameFormat = regexp.MustCompile(`^[!-9;-~]{1,253}$`)

// newName makes the name of a key that is made now.
func newName(now time.Time) string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return "key-" + now.UTC().Format(time.DateOnly) + "-" + hex.EncodeToString(random[:])
}

// newKey makes a key of that name.
func newKey(name string) Key {
	var secret [keySize]byte
	_, _ = rand.Read(secret[:]) // never fails
	return Key{Name: name, Secret: base64.StdEncoding.EncodeToString(secret[:])}
}

// check returns what is wrong with a key. It does not show the key.
func (k Key) check() error {
	if !nameFormat.MatchString(k.Name) {
		return fmt.Errorf("the name of a key, %q, must have letters, digits and signs except colons", k.Name)
	}
	if k.Secret == "" {
		return nil
	}
	if secret, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || len(secret) != keySize {
		return fmt.Errorf("the key %s must be %d bytes in base64", k.Name, keySize)
	}
	return nil
}

// document is an EncryptionConfiguration as this command writes it.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resources  []rule `json:"resources"`
}

// rule says how resources are encrypted.
type rule struct {
	Resources []string   `json:"resources"`
	Providers []provider `json:"providers"`
}

// provider is one provider of a rule.
type provider struct {
	AESGCM   *keyList  `json:"aesgcm,omitempty"`
	Identity *struct{} `json:"identity,omitempty"`
}

// keyList is a list of keys in a file.
type keyList struct {
	Keys []Key `json:"keys"`
}

// documentOf returns the file with these keys: the first one writes. Values that are not encrypted are read, too: those
// of the time before there was a key.
func documentOf(keys []Key) document {
	return document{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration", Resources: []rule{{
		Resources: []string{"secrets"},
		Providers: []provider{{AESGCM: &keyList{keys}}, {Identity: &struct{}{}}}}}}
}

const header = "# The keys of this cluster's Secrets in etcd, kept by bonsai encryption. Whoever reads this file and etcd reads the Secrets.\n"

// ErrChanged is the error of a file that is not as this command writes it.
var ErrChanged = errors.New("it was changed by hand: change it back, or rotate its keys by hand, too (docs/guides/encryption.md)")

// Read returns the keys of the cluster's file: the first one writes. The error is fs.ErrNotExist if there is no file.
func Read(l plan.Layout) ([]Key, error) {
	text, err := os.ReadFile(l.Encryption())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lostError{l.Encryption()}
	}
	if err != nil {
		return nil, fmt.Errorf("read the keys of the cluster's Secrets: %w", err)
	}
	return parse(l.Encryption(), text)
}

// lostError is the error of the missing file at path.
type lostError struct{ path string }

func (e lostError) Error() string {
	return e.path + " is missing: it has the keys of the cluster's Secrets, which nobody can read without them. Put it back, from a backup or another machine with a control plane"
}

// Is reports whether target is fs.ErrNotExist.
func (e lostError) Is(target error) bool { return target == fs.ErrNotExist }

// parse reads the keys of a file. Its errors have no text of the file.
func parse(path string, text []byte) ([]Key, error) {
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil || len(d.Resources) != 1 ||
		len(d.Resources[0].Providers) == 0 || d.Resources[0].Providers[0].AESGCM == nil {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	keys := d.Resources[0].Providers[0].AESGCM.Keys
	same, err := yaml.Marshal(documentOf(keys))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	if is, err := yaml.Marshal(d); err != nil || !bytes.Equal(is, same) || len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	return keys, checkKeys(path, keys, true)
}

// anyNames returns the names of all keys of the cluster's file, also of one that was changed by hand.
func anyNames(l plan.Layout) ([]string, error) {
	text, err := os.ReadFile(l.Encryption())
	if err != nil {
		return nil, err
	}
	var d struct {
		Resources []struct {
			Providers []map[string]struct {
				Keys []Key `json:"keys"`
			} `json:"providers"`
		} `json:"resources"`
	}
	if yaml.Unmarshal(text, &d) != nil { // whose error may show a key
		return nil, fmt.Errorf("%s: is no EncryptionConfiguration", l.Encryption())
	}
	var all []string
	for _, r := range d.Resources {
		for _, providers := range r.Providers {
			for _, p := range providers {
				all = append(all, names(p.Keys)...)
			}
		}
	}
	return all, nil
}

// checkKeys checks the keys of the file at path. whole reports whether each must have its bytes.
func checkKeys(path string, keys []Key, whole bool) error {
	seen := map[string]bool{}
	for _, k := range keys {
		if err := k.check(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if seen[k.Name] {
			return fmt.Errorf("%s: has two keys called %s", path, k.Name)
		}
		if whole && k.Secret == "" {
			return fmt.Errorf("%s: the key %s has no secret", path, k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

// write writes the cluster's file, as the next generation.
func write(l plan.Layout, keys []Key) error {
	text, err := yaml.Marshal(documentOf(keys))
	if err != nil {
		return err
	}
	before, err := os.ReadFile(l.Encryption())
	if host.IgnoreMissing(err) != nil {
		return err
	}
	head := fmt.Sprintf("%s%s%d\n", header, generationPrefix, generation(before)+1)
	return host.KeepFile(l.Encryption(), append([]byte(head), text...))
}

// readList reads a list of keys, none if there is no file. whole reports whether each must have its bytes.
func readList(path string, whole bool) ([]Key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, host.IgnoreMissing(err)
	}
	var list keyList
	if yaml.UnmarshalStrict(text, &list) != nil || list.Keys == nil { // whose error may show a key
		return nil, fmt.Errorf("%s: is no list of keys", path)
	}
	return list.Keys, checkKeys(path, list.Keys, whole)
}

// writeList writes a list of keys.
func writeList(path string, keys []Key) error {
	text, err := yaml.Marshal(keyList{Keys: keys})
	if err != nil {
		return err
	}
	return host.KeepFile(path, text)
}

// Kept returns the keys that only snapshots need.
func Kept(l plan.Layout) ([]Key, error) { return readList(l.KeptKeys(), true) }

// names returns the names of keys.
func names(keys []Key) []string {
	all := make([]string, 0, len(keys))
	for _, k := range keys {
		all = append(all, k.Name)
	}
	return all
}

// find returns the key of that name.
func find(name string, lists ...[]Key) (Key, bool) {
	for _, keys := range lists {
		if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 {
			return keys[i], true
		}
	}
	return Key{}, false
}

// Make makes the file of a new cluster with its first key. An existing file stays. It refuses where a cluster has lost
// its file: with another key the API servers would read no Secret.
//
// If the user gives the API servers a file of his own, Make checks that they will be able to read what the cluster's
// own keys have written.
func Make(c plan.Config, now time.Time) error {
	l := c.Layout()
	keys, err := Read(l)
	switch file, given := componentflags.OwnEncryption(c.ComponentFlags); {
	case given && c.EncryptSecrets && err == nil:
		return checkOwn(l, file, keys)
	case given || !c.EncryptSecrets || err == nil || errors.Is(err, ErrChanged):
		return nil
	case !errors.Is(err, fs.ErrNotExist) || c.Joined != nil || host.StatError(l.At("etcd")) == nil:
		return err
	}
	return write(l, []Key{newKey(newName(now))})
}

// checkOwn returns an error if the user's file lacks keys of the cluster's.
func checkOwn(l plan.Layout, file string, keys []Key) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil // the API server says what is wrong with its flag
	}
	for _, k := range keys {
		if !bytes.Contains(text, []byte(k.Secret)) {
			return fmt.Errorf("kube-apiserver --encryption-provider-config=%s: the file lacks the key %s, with which this cluster's Secrets are encrypted: add it, from %s (or remove that file, if no Secret needs its keys)",
				file, k.Name, l.Encryption())
		}
	}
	return nil
}

// Enable makes the file of an existing cluster whose Secrets are not encrypted yet, and notes that all of them are to
// be written again (Rotation). It can be repeated.
func Enable(l plan.Layout, now time.Time) error {
	keys, err := Read(l)
	if errors.Is(err, fs.ErrNotExist) {
		keys = []Key{newKey(newName(now))}
		err = write(l, keys)
	}
	if err != nil {
		return err
	}
	return host.KeepFile(l.Rotation(), []byte(keys[0].Name+"\n"))
}

// target returns the key of a rotation that is not finished, "" if there is none.
func target(l plan.Layout) (string, error) {
	text, err := os.ReadFile(l.Rotation())
	if err != nil {
		return "", host.IgnoreMissing(err)
	}
	name := strings.TrimSpace(string(text))
	if !nameFormat.MatchString(name) {
		return "", fmt.Errorf("%s: names no key: remove it", l.Rotation())
	}
	return name, nil
}

// IsRotating reports whether a rotation was begun and is not finished.
func IsRotating(l plan.Layout) bool { return host.StatError(l.Rotation()) == nil }
