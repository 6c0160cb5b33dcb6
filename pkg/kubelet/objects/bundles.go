package objects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/kubelet/notify"
)

// bundles are the ClusterTrustBundles of the cluster, as soon as a pod on the node asks for one. A kubelet may see all
// of them, so there is one watch, which stays.
type bundles struct {
	client Client
	log    *slog.Logger
	wanted notify.Signal

	mu     sync.Mutex
	all    map[string]*certificatesv1.ClusterTrustBundle
	pods   map[types.UID][]*corev1.ClusterTrustBundleProjection
	synced chan struct{} // closed when all bundles were listed once
}

func newBundles(client Client, log *slog.Logger) *bundles {
	return &bundles{client: client, log: log, wanted: notify.New(),
		all:  map[string]*certificatesv1.ClusterTrustBundle{},
		pods: map[types.UID][]*corev1.ClusterTrustBundleProjection{}, synced: make(chan struct{})}
}

// run follows the bundles from the first pod on that asks for one, until ctx is done.
func (b *bundles) run(ctx context.Context, changed func(pods []types.UID)) {
	select {
	case <-ctx.Done():
	case <-b.wanted:
		apiclient.Follow(ctx, b.client.TrustBundles(), "kubelet-clustertrustbundles",
			bundleStore{b, changed}, b.log)
	}
}

// track remembers what a pod asks for.
func (b *bundles) track(pod *corev1.Pod) {
	var asks []*corev1.ClusterTrustBundleProjection
	for i := range pod.Spec.Volumes {
		if p := pod.Spec.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				if ask := p.Sources[j].ClusterTrustBundle; ask != nil {
					asks = append(asks, ask)
				}
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if asks == nil {
		delete(b.pods, pod.UID)
		return
	}
	b.pods[pod.UID] = asks
	b.wanted.Notify()
}

func (b *bundles) untrack(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, uid)
}

// patience is how long a source waits for the first list of bundles.
const patience = 10 * time.Second

// selected returns the bundles that a source asks for. It waits a little until all were listed once.
func (b *bundles) selected(ctx context.Context,
	ask *corev1.ClusterTrustBundleProjection) ([]*certificatesv1.ClusterTrustBundle, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-b.synced:
	case <-timeout.C:
		return nil, errors.New("the ClusterTrustBundles have not been listed yet")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	selector, err := labelsOf(ask)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*certificatesv1.ClusterTrustBundle
	for _, one := range b.all {
		if concerns(ask, one) && (ask.Name != nil || selector.Matches(labels.Set(one.Labels))) {
			found = append(found, one)
		}
	}
	if found == nil && ask.Name != nil {
		return nil, apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundle"), *ask.Name)
	}
	return found, nil
}

// labelsOf returns a source's selector: without one nothing is selected, with an empty one everything of its signer.
func labelsOf(ask *corev1.ClusterTrustBundleProjection) (labels.Selector, error) {
	s, err := metav1.LabelSelectorAsSelector(ask.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("select ClusterTrustBundles: %w", err)
	}
	return s, nil
}

// concerns reports whether a bundle may be among those that a source asks for.
func concerns(ask *corev1.ClusterTrustBundleProjection, one *certificatesv1.ClusterTrustBundle) bool {
	if ask.Name != nil {
		return *ask.Name == one.Name
	}
	return ask.SignerName != nil && *ask.SignerName == one.Spec.SignerName
}

// users returns the pods that a change of bundles may concern. b.mu is held.
func (b *bundles) users(changed ...*certificatesv1.ClusterTrustBundle) (pods []types.UID) {
	for uid, asks := range b.pods {
		if anyConcerns(asks, changed) {
			pods = append(pods, uid)
		}
	}
	return pods
}

func anyConcerns(asks []*corev1.ClusterTrustBundleProjection, changed []*certificatesv1.ClusterTrustBundle) bool {
	for _, ask := range asks {
		for _, one := range changed {
			if concerns(ask, one) {
				return true
			}
		}
	}
	return false
}

// bundleStore puts what the watch sees into bundles, and tells changed of the pods that it may concern.
type bundleStore struct {
	b       *bundles
	changed func([]types.UID)
}

var _ apiclient.Sink[*certificatesv1.ClusterTrustBundle] = bundleStore{}

// Set records a bundle.
func (s bundleStore) Set(one *certificatesv1.ClusterTrustBundle) {
	s.b.mu.Lock()
	s.b.all[one.Name] = one
	pods := s.b.users(one)
	s.b.mu.Unlock()
	s.tell(pods)
}

// Delete forgets a bundle.
func (s bundleStore) Delete(one *certificatesv1.ClusterTrustBundle) {
	s.b.mu.Lock()
	delete(s.b.all, one.Name)
	pods := s.b.users(one)
	s.b.mu.Unlock()
	s.tell(pods)
}

// Replace records all bundles.
func (s bundleStore) Replace(all []*certificatesv1.ClusterTrustBundle) {
	s.b.mu.Lock()
	changed := slices.Clone(all)
	for _, one := range s.b.all {
		changed = append(changed, one)
	}
	s.b.all = make(map[string]*certificatesv1.ClusterTrustBundle, len(all))
	for _, one := range all {
		s.b.all[one.Name] = one
	}
	pods := s.b.users(changed...)
	select {
	case <-s.b.synced:
	default:
		close(s.b.synced)
	}
	s.b.mu.Unlock()
	s.tell(pods)
}

func (s bundleStore) tell(pods []types.UID) {
	if len(pods) > 0 {
		s.changed(pods)
	}
}
