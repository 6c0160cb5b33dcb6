package join

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
)

// The Secret with the authorities of a cluster for machines that join with a control plane is kubeadm's: its name, its
// entries, and how they are encrypted (AES-256-GCM with the nonce before each). It belongs to a bootstrap token that
// permits nothing, and goes when that expires.
const (
	certificatesSecret = "kubeadm-certs"
	certificatesTTL    = 2 * time.Hour
	certificateKeySize = 32
)

// shared are the files of the PKI that all control planes share. Each makes its own certificates with them.
var shared = [...]string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd-ca.crt", "etcd-ca.key",
	"sa.key", "sa.pub"}

// encryptionEntry is the entry with the keys of the cluster's Secrets, if it encrypts them. kubeadm has none like it.
const encryptionEntry = "encryption-config.yaml"

// place returns where a machine has the file of an entry.
func place(l plan.Layout, entry string) string {
	if entry == encryptionEntry {
		return l.Encryption()
	}
	return l.PKI(entry)
}

// CertificateKey is the key of the Secret. Whoever has it and a bootstrap token is the administrator of the cluster.
type CertificateKey []byte

// NewCertificateKey makes a key.
func NewCertificateKey() (CertificateKey, error) {
	key := make(CertificateKey, certificateKeySize)
	_, err := rand.Read(key)
	return key, err
}

// ParseCertificateKey reads a key of 64 hexadecimal digits. Its error does not contain the key.
func ParseCertificateKey(text string) (CertificateKey, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != certificateKeySize {
		return nil, fmt.Errorf("--certificate-key: must have %d hexadecimal digits (bonsai token create --upload-certs --print-join-command prints it)",
			2*certificateKeySize)
	}
	return key, nil
}

// Text returns the key as ParseCertificateKey reads it.
func (k CertificateKey) Text() string { return hex.EncodeToString(k) }

func (k CertificateKey) gcm() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// encrypt returns the nonce and the encrypted data.
func (k CertificateKey) encrypt(data []byte) ([]byte, error) {
	gcm, err := k.gcm()
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, gcm.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return gcm.Seal(nonce, nonce, data, nil), nil
}

// decrypt returns the data that encrypt got.
func (k CertificateKey) decrypt(data []byte) ([]byte, error) {
	gcm, err := k.gcm()
	if err != nil {
		return nil, err
	}
	if len(data) < gcm.NonceSize() {
		return nil, errors.New("it is too short")
	}
	return gcm.Open(nil, data[:gcm.NonceSize()], data[gcm.NonceSize():], nil)
}

// UploadCertificates writes the authorities of the cluster, which runs, into the Secret, encrypted with the key. An
// earlier one is replaced, and its key opens nothing any more.
func UploadCertificates(ctx context.Context, c plan.Config, key CertificateKey, now time.Time) error {
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	entries := shared[:]
	if componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		entries = append(slices.Clone(entries), encryptionEntry)
	}
	for _, name := range entries {
		plain, err := os.ReadFile(place(c.Layout(), name))
		if err != nil {
			return err
		}
		if data[name], err = key.encrypt(plain); err != nil {
			return fmt.Errorf("encrypt %s: %w", name, err)
		}
	}
	t, err := bootstraptoken.New(rand.Reader)
	if err != nil {
		return err
	}
	owner := t.Object("Proxy for managing TTL for the kubeadm-certs secret", now.Add(certificatesTTL))
	for _, use := range []string{bootstraptoken.KeyAuthentication, bootstraptoken.KeySigning,
		bootstraptoken.KeyGroups} {
		delete(owner.Data, use)
	}
	if owner, err = secrets.Create(ctx, owner); err != nil {
		return fmt.Errorf("create the token that ends the Secret %s: %w", certificatesSecret, err)
	}
	if err := Withdraw(ctx, c); err != nil {
		return err
	}
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem,
		Name: certificatesSecret, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: owner.Name, UID: owner.UID}}}, Data: data})
	if err != nil {
		return fmt.Errorf("create the Secret %s: %w", certificatesSecret, err)
	}
	return nil
}

// Authorities are the files that all control planes share, by their names.
type Authorities map[string][]byte

// EncryptSecrets reports whether the cluster encrypts Secrets, and its keys are among the files.
func (a Authorities) EncryptSecrets() bool { return a[encryptionEntry] != nil }

// Authorities reads the authorities of the cluster with the token and the certificate key of the request. Each must be
// whole, and the cluster's must be the one that the cluster has proved.
func (d *Cluster) Authorities(ctx context.Context, r Request) (Authorities, error) {
	var s corev1.Secret
	err := readObject(ctx, d.client, d.cluster.Server, "kube-system/secrets/"+certificatesSecret, r.token.String(), &s)
	if status := (statusError(0)); errors.As(err, &status) && status == http.StatusNotFound {
		return nil, errors.New("the cluster has no certificates for another control plane, or no longer: they are there for two hours (on a machine with a control plane: bonsai token create --upload-certs --print-join-command)")
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the certificates of the control plane: %w", err)
	}
	all := Authorities{}
	entries := shared[:]
	if _, has := s.Data[encryptionEntry]; has {
		entries = append(slices.Clone(entries), encryptionEntry)
	}
	for _, name := range entries {
		if all[name], err = r.key.decrypt(s.Data[name]); err != nil {
			return nil, fmt.Errorf("--certificate-key: does not open %s of the Secret %s: it is the key of an earlier upload, or of another cluster",
				name, certificatesSecret)
		}
	}
	for _, of := range []string{"ca", "front-proxy-ca", "etcd-ca"} {
		if _, err := tls.X509KeyPair(all[of+".crt"], all[of+".key"]); err != nil {
			return nil, fmt.Errorf("the authority %s in the Secret %s: %w", of, certificatesSecret, err)
		}
	}
	if !slices.Equal(all["ca.crt"], d.cluster.CertificateAuthorityData) {
		return nil, fmt.Errorf("the authority in the Secret %s is not the cluster's: upload the certificates again",
			certificatesSecret)
	}
	return all, nil
}

// Write writes the authorities into the PKI of a machine that joins, and the keys of Secrets beside it.
func (a Authorities) Write(c plan.Config) error {
	for name, data := range a {
		if err := host.KeepFile(place(c.Layout(), name), data); err != nil {
			return err
		}
	}
	return nil
}

// statusError is an answer that is not 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }

// peersPrefix begins the entries of nodeConfigMap with the control planes of the cluster, one each, so that machines
// that join or leave at the same time do not undo each other's changes. The name of the control plane follows.
const peersPrefix = "control-plane."

// PublishPeer says in the cluster, which runs, that this machine has a control plane.
func PublishPeer(ctx context.Context, c plan.Config) error {
	p := c.Etcd().Peer
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ctx, cancel := client.WhileAnswered(ctx)
	defer cancel()
	return setConfigMap(ctx, c, "", metav1.NamespaceSystem, nodeConfigMap,
		map[string]string{peersPrefix + p.Name: string(text)})
}

// RemovePeer says in the cluster, by the API server of that URL, that there is no such control plane any more.
func RemovePeer(ctx context.Context, c plan.Config, server, name string) error {
	ctx, cancel := client.WhileAnswered(ctx)
	defer cancel()
	return setConfigMap(ctx, c, server, metav1.NamespaceSystem, nodeConfigMap,
		map[string]string{peersPrefix + name: ""})
}

// RemoveOtherPeers says in the cluster, which runs, that no other machine has a control plane any more. What the
// cluster says counts, not what this machine knows of it: a machine that has just joined may be in the cluster's list
// alone, and all machines would go on to ask it.
func RemoveOtherPeers(ctx context.Context, c plan.Config) error {
	ctx, cancel := client.WhileAnswered(ctx)
	defer cancel()
	return editConfigMap(ctx, c, "", metav1.NamespaceSystem, nodeConfigMap, func(data map[string]string) {
		maps.DeleteFunc(data, func(key, _ string) bool {
			name, is := strings.CutPrefix(key, peersPrefix)
			return is && name != c.Etcd().Name
		})
	})
}
