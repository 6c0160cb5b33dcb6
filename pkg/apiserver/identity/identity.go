// Package identity keeps a Lease for each API server in kube-system, by which administrators and components see which
// servers there are. A Lease that nobody has renewed for its duration is deleted by any of them.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

const (
	// label and its value are those by which Kubernetes' Leases of API servers are known.
	label = "apiserver.kubernetes.io/identity"
	value = "kube-apiserver"
	// duration is for how long a Lease stands, renewEvery how often it is renewed and collectEvery how often ended ones
	// are looked for: upstream's.
	duration     = time.Hour
	renewEvery   = 10 * time.Second
	collectEvery = time.Hour
)

// Config says who this server is.
type Config struct {
	Stores registry.Stores
	// Hostname is the machine's. The Lease's name is made from it, so servers of one hostname share a Lease.
	Hostname string
	// Instance tells this process from the one before.
	Instance string
	Now      func() time.Time
	Log      *slog.Logger
}

// Identity keeps this server's Lease.
type Identity struct {
	cfg  Config
	name string
}

// New returns an Identity; Run keeps it.
func New(cfg Config) (*Identity, error) {
	if cfg.Stores == nil || cfg.Hostname == "" || cfg.Instance == "" || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("identity of the API server: Stores, Hostname, Instance, Now and Log are required")
	}
	return &Identity{cfg: cfg, name: Name(cfg.Hostname)}, nil
}

// Name is the name of the Lease of the server on the machine with this hostname.
func Name(hostname string) string {
	hash := sha256.Sum256([]byte(hostname))
	return "apiserver-" +
		strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}

// Run renews the Lease, and deletes ended ones, until ctx ends.
func (i *Identity) Run(ctx context.Context) error {
	ctx = request.AsServer(ctx)
	var collected time.Time
	for {
		if err := i.renew(ctx); err != nil && ctx.Err() == nil {
			i.cfg.Log.Warn("the API server's Lease is not renewed", "err", err, "retry", renewEvery)
		}
		if now := i.cfg.Now(); now.Sub(collected) >= collectEvery {
			if err := i.collect(ctx); err == nil {
				collected = now
			} else if ctx.Err() == nil {
				i.cfg.Log.Warn("ended Leases of API servers are not deleted", "err", err, "retry", renewEvery)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewEvery):
		}
	}
}

func (i *Identity) leases() (registry.Store, error) {
	if s := i.cfg.Stores.Store(coordinationv1.Resource("leases")); s != nil {
		return s, nil
	}
	return nil, errors.New("leases are not served yet")
}

// renew writes the Lease, which it makes if there is none.
func (i *Identity) renew(ctx context.Context) error {
	leases, err := i.leases()
	if err != nil {
		return err
	}
	_, err = leases.Update(ctx, metav1.NamespaceSystem, i.name, "", func(obj runtime.Object) (runtime.Object, error) {
		l, ok := obj.(*coordinationv1.Lease)
		if !ok {
			return nil, fmt.Errorf("%T is not a Lease", obj)
		}
		i.fill(l)
		return l, nil
	}, &metav1.UpdateOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: i.name}}
	i.fill(l)
	if _, err = leases.Create(ctx, l.Namespace, l, &metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil // by a server of the same hostname
	}
	return err
}

func (i *Identity) fill(l *coordinationv1.Lease) {
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	l.Labels[label], l.Labels[corev1.LabelHostname] = value, i.cfg.Hostname
	l.Spec.HolderIdentity = ptr.To(i.name + "_" + i.cfg.Instance)
	l.Spec.LeaseDurationSeconds = ptr.To(int32(duration / time.Second))
	l.Spec.RenewTime = &metav1.MicroTime{Time: i.cfg.Now()}
}

// collect deletes Leases of API servers that have ended.
func (i *Identity) collect(ctx context.Context) error {
	leases, err := i.leases()
	if err != nil {
		return err
	}
	objs, err := leases.List(ctx, metav1.NamespaceSystem, label+"="+value)
	if err != nil {
		return fmt.Errorf("listing them: %w", err)
	}
	for _, obj := range objs {
		l, ok := obj.(*coordinationv1.Lease)
		if !ok || !ended(l, i.cfg.Now()) {
			continue
		}
		// Its version makes sure that it has not been renewed since.
		opts := metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
		_, _, err := leases.Delete(ctx, l.Namespace, l.Name, &opts)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s: %w", l.Name, err)
		}
	}
	return nil
}

// ended reports whether nobody has renewed l for its duration. One that does not say has ended.
func ended(l *coordinationv1.Lease, now time.Time) bool {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return now.After(l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second))
}
