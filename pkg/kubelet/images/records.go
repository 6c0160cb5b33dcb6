package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/durable"
	"bonsai/pkg/kubelet/runtime"
)

// Records remember how images were pulled, in files in upstream's formats: below pulling/ one for each name that is
// being pulled, below pulled/ one for each image, with the credentials that it was pulled with. They outlive the
// kubelet, because the images do, too. mu also orders the files: each record is read, changed and written under it.
type Records struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	pulling map[string]int // pulls under way, by name
}

// maxCredentials bounds the secrets, and the accounts, that are remembered for one image name. A pod whose credential
// was dropped pulls the image again.
const maxCredentials = 100

// OpenRecords makes the directories below dir, which is image_manager of the kubelet's.
func OpenRecords(dir string, now func() time.Time) (*Records, error) {
	r := &Records{dir: dir, now: now, pulling: map[string]int{}}
	for _, sub := range []string{"pulling", "pulled"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the directory of image records: %w", err)
		}
	}
	return r, nil
}

// file returns the path of the record of an image (its ID), or of a name that is being pulled. It is a hash, because
// names contain slashes.
func (r *Records) file(sub, of string) string {
	hash := sha256.Sum256([]byte(of))
	return filepath.Join(r.dir, sub, "sha256-"+hex.EncodeToString(hash[:]))
}

// Pulling records that an image is about to be pulled under a name. Should the kubelet end before the pull is recorded,
// the image does not count as one that was always there.
func (r *Records) Pulling(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	intent := &kubeletconfig.ImagePullIntent{
		TypeMeta: metav1.TypeMeta{APIVersion: kubeletconfig.SchemeGroupVersion.String(), Kind: "ImagePullIntent"},
		Image:    name}
	if err := replace(r.file("pulling", name), intent); err != nil {
		return err
	}
	r.pulling[name]++
	return nil
}

// Pulled ends what Pulling began: image id was pulled under that name with a credential (nil: none was needed), or,
// with an id of "", was not.
func (r *Records) Pulled(name, id string, with *Credential) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id != "" {
		if err := r.addLocked(name, id, with); err != nil {
			return err // the note stays: whoever wants the image must show that he may have it
		}
	}
	if r.pulling[name]--; r.pulling[name] > 0 {
		return nil
	}
	delete(r.pulling, name)
	if err := os.Remove(r.file("pulling", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a pull: %w", err)
	}
	return nil
}

// Add records that a credential, which was not the one that the image was pulled with, is as good.
func (r *Records) Add(name, id string, with *Credential) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addLocked(name, id, with)
}

// addLocked is Add for callers that hold mu. Replacing an unreadable record loses credentials, and never grants any:
// their pods have to pull again.
func (r *Records) addLocked(name, id string, with *Credential) error {
	rec, err := r.get(id)
	if err != nil {
		rec = nil // a record that cannot be read is replaced
	}
	if rec == nil {
		rec = &kubeletconfig.ImagePulledRecord{
			TypeMeta: metav1.TypeMeta{APIVersion: kubeletconfig.SchemeGroupVersion.String(), Kind: "ImagePulledRecord"},
			ImageRef: id}
	}
	if rec.CredentialMapping == nil {
		rec.CredentialMapping = map[string]kubeletconfig.ImagePullCredentials{}
	}
	rec.LastUpdatedTime = metav1.Time{Time: r.now()}
	rec.CredentialMapping[repository(name)] = merged(rec.CredentialMapping[repository(name)], with)
	return replace(r.file("pulled", id), rec)
}

// merged returns the credentials of an image name with one more. If all pods of the node may use the image, no names
// are kept.
func merged(c kubeletconfig.ImagePullCredentials, with *Credential) kubeletconfig.ImagePullCredentials {
	switch {
	case c.NodePodsAccessible || with == nil || with.Secret == nil && with.Account == nil:
		return kubeletconfig.ImagePullCredentials{NodePodsAccessible: true}
	case with.Secret != nil:
		s := kubeletconfig.ImagePullSecret{UID: with.Secret.UID, Namespace: with.Secret.Namespace,
			Name: with.Secret.Name, CredentialHash: credentialHash(with)}
		c.KubernetesSecrets = append(
			slices.DeleteFunc(slices.Clone(c.KubernetesSecrets), func(o kubeletconfig.ImagePullSecret) bool {
				return o.UID == s.UID && o.Namespace == s.Namespace && o.Name == s.Name
			}), s)
		c.KubernetesSecrets = c.KubernetesSecrets[max(0, len(c.KubernetesSecrets)-maxCredentials):]
	default:
		a := kubeletconfig.ImagePullServiceAccount{UID: with.Account.UID, Namespace: with.Account.Namespace,
			Name: with.Account.Name}
		c.KubernetesServiceAccounts = append(
			slices.DeleteFunc(slices.Clone(c.KubernetesServiceAccounts),
				func(o kubeletconfig.ImagePullServiceAccount) bool {
					return o == a
				}), a)
		c.KubernetesServiceAccounts =
			c.KubernetesServiceAccounts[max(0, len(c.KubernetesServiceAccounts)-maxCredentials):]
	}
	return c
}

// Get returns the record of an image, nil if there is none, and whether a pull under that name was begun and never
// ended.
func (r *Records) Get(name, id string) (rec *kubeletconfig.ImagePulledRecord, begun bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec, err = r.get(id); err != nil {
		return nil, false, err
	}
	_, err = os.Lstat(r.file("pulling", name))
	return rec, err == nil, nil
}

// Count returns how many pulls have begun and not ended, and how many pulled images are recorded.
func (r *Records) Count() (pulling, pulled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := func(sub string) (n int) {
		files, _ := os.ReadDir(filepath.Join(r.dir, sub)) // what cannot be read holds nothing that can be used
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".tmp") {
				n++
			}
		}
		return n
	}
	return in("pulling"), in("pulled")
}

// get reads the record of an image, nil if there is none. It compares the record's own id, as the file's name is only a
// hash. The caller holds mu.
func (r *Records) get(id string) (*kubeletconfig.ImagePulledRecord, error) {
	data, err := os.ReadFile(r.file("pulled", id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	rec := &kubeletconfig.ImagePulledRecord{}
	if err == nil {
		err = json.Unmarshal(data, rec)
	}
	if err == nil && rec.ImageRef != id {
		err = fmt.Errorf("it is of %q", rec.ImageRef)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of image %s: %w", id, err)
	}
	return rec, nil
}

// prune removes the records of images that are not present any more. A record that was written since the images were
// listed stays. The times in the files have whole seconds, hence Truncate.
//
// A record that cannot be read stays, too, while its image is present: without it the image would count as preloaded,
// and every pod could use it. Its file's name says which image it is of.
func (r *Records) prune(present []runtime.Image, listed time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	files, err := os.ReadDir(filepath.Join(r.dir, "pulled"))
	if err != nil {
		return fmt.Errorf("list the image records: %w", err)
	}
	wanted := make(map[string]bool, len(present))
	for i := range present {
		wanted[r.file("pulled", present[i].ID)] = true
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(r.dir, "pulled", f.Name())
		if wanted[path] {
			continue
		}
		rec := kubeletconfig.ImagePulledRecord{}
		if data, err := os.ReadFile(path); err != nil || json.Unmarshal(data, &rec) != nil ||
			strings.HasSuffix(f.Name(), ".tmp") || rec.LastUpdatedTime.Time.Before(listed.Truncate(time.Second)) {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// replace writes a record, whole or not at all, also if the machine loses its power.
func replace(path string, record any) error {
	data, err := json.Marshal(record)
	if err == nil {
		err = durable.Replace(path+".tmp", path, data)
	}
	if err != nil {
		return fmt.Errorf("write an image record: %w", err)
	}
	return nil
}

// credentialHash identifies the content of a credential, not its origin.
func credentialHash(c *Credential) string {
	text, err := json.Marshal(
		map[string]string{"username": c.Auth.Username, "password": c.Auth.Password,
			"serveraddress": c.Auth.ServerAddress,
			"identitytoken": c.Auth.IdentityToken, "registrytoken": c.Auth.RegistryToken})
	if err != nil {
		panic(err) // strings are always encoded
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}
