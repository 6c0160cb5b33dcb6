package join

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
)

// keysSecret is the Secret by which the control planes of other machines receive the keys of Secrets while these are
// changed. It is encrypted with a key that follows from the key of etcd's authority, which all control planes have and
// no Secret has in the clear.
const keysSecret = "bonsai-encryption"

// keysKey returns the key of keysSecret.
func keysKey(c plan.Config) (CertificateKey, error) {
	authority, err := os.ReadFile(c.Layout().PKI("etcd-ca.key"))
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, authority, nil, "keys of Secrets for other control planes of a Bonsai cluster",
		certificateKeySize)
}

// PublishKeys gives the control planes of other machines the file with the keys of Secrets as it is on this one
// (FollowKeys). WithdrawKeys must be called when all have it.
func PublishKeys(ctx context.Context, c plan.Config) error {
	text, err := os.ReadFile(c.Layout().Encryption())
	if err != nil {
		return err
	}
	key, err := keysKey(c)
	if err != nil {
		return err
	}
	sealed, err := key.encrypt(text)
	if err != nil {
		return err
	}
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: keysSecret},
		Data: map[string][]byte{encryptionEntry: sealed}}
	// Without a resource version, the update replaces whatever is there.
	if _, err = secrets.Update(ctx, s); apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("write the Secret %s: %w", keysSecret, err)
	}
	return nil
}

// FollowKeys keeps the file with the keys of Secrets on this machine, which has joined with a control plane, as the
// cluster says while they are changed, until ctx ends. The API server follows the file. take writes a file that was
// published, if it is newer: whoever can write the Secret can put one there that was published before.
func FollowKeys(ctx context.Context, c plan.Config, take func(text []byte) error, log *slog.Logger) {
	api, err := client.Core(c)
	if err != nil {
		log.Error("cannot follow the keys of Secrets", "err", err)
		return
	}
	look := func(obj any) {
		s, ok := obj.(*corev1.Secret)
		if !ok {
			return
		}
		if err := takeKeys(c, s, take); err != nil {
			log.Error("cannot take over the keys of Secrets", "err", err)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.Secrets(api).ListWatch(apiclient.Selection{Namespace: metav1.NamespaceSystem,
			Fields: "metadata.name=" + keysSecret, Newest: true}),
		// The resync tries again what could not be written.
		ObjectType: &corev1.Secret{}, ResyncPeriod: followAgain,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }},
	})
	informer.RunWithContext(ctx)
}

// takeKeys takes the file of the Secret, with its generation: all of it is sealed, so whoever can write the Secret
// cannot make an earlier file look newer.
func takeKeys(c plan.Config, s *corev1.Secret, take func(text []byte) error) error {
	key, err := keysKey(c)
	if err != nil {
		return err
	}
	text, err := key.decrypt(s.Data[encryptionEntry])
	if err != nil || len(text) == 0 {
		return fmt.Errorf("the Secret %s is not what a control plane of this cluster has written", keysSecret)
	}
	if err := take(text); err != nil {
		return fmt.Errorf("the Secret %s: %w", keysSecret, err)
	}
	return nil
}

// Withdraw removes what other control planes were to take the keys of Secrets from: the authorities that wait for
// machines to join, which have the keys as they were, and PublishKeys' Secret.
func Withdraw(ctx context.Context, c plan.Config) error {
	secrets, err := tokens(c)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{certificatesSecret, keysSecret} {
		err := secrets.Delete(ctx, metav1.NamespaceSystem, name, "")
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove the Secret %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
