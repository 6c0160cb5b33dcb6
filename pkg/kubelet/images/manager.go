// Package images makes sure that a container's image is on the node before the container is made, as its pull policy
// says, and removes unused images when the disk is nearly full.
package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Delays between pulls of one image that fails: 10 s doubling to 5 min.
const (
	backOffInitial = 10 * time.Second
	backOffMax     = 5 * time.Minute
)

// Service is the runtime's image service.
type Service interface {
	Image(ctx context.Context, name string) (*runtime.Image, error)
	Pull(ctx context.Context, name string, auth *runtime.Auth, pod *corev1.Pod) (string, error)
}

// Event reports a step, in upstream's words. kind is Normal or Warning.
type Event func(kind, reason, message string)

// Reasons of a waiting container whose image is not there.
const (
	ReasonErrImagePull      = "ErrImagePull"
	ReasonImagePullBackOff  = "ImagePullBackOff"
	ReasonErrImageNeverPull = "ErrImageNeverPull"
	reasonInvalidImageName  = "InvalidImageName"
	reasonInspectFailed     = "ImageInspectError"
)

// Error is why an image is not available. Reason is one of the constants, Until is when the next pull may be tried.
type Error struct {
	Reason string
	Until  time.Time
	msg    string
}

// Error is the message that the container's status shows.
func (e *Error) Error() string { return e.msg }

// Config is what a Manager needs. Service and Log are required.
type Config struct {
	Service Service
	// Serialize pulls one image at a time; otherwise at most MaxParallel, 0 for no limit.
	Serialize   bool
	MaxParallel int
	// Allow reports whether a pull may begin now; nil: any may.
	Allow func() bool
	// Providers are asked for credentials after the pod's secrets; nil: there are none.
	Providers Providers
	// Records remember what images were pulled with, and Verification says which pods must show that they may have an
	// image that is present; nil: none must.
	Records      *Records
	Verification Verification
	// Account reads a pod's service account; it is required with Records.
	Account func(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	// Flush, if set, returns when the images that were pulled are on the disk.
	Flush func(context.Context) error
	// Pulled, if set, receives how long the pull of an image of so many bytes took.
	Pulled func(size uint64, took time.Duration)
	// Ensured, if set, receives each image that was asked for; Checked, if set, receives the result of each check
	// whether a pod may use an image that is present.
	Ensured func(Request)
	Checked func(Check)
	Now     func() time.Time
	Log     *slog.Logger
}

// Providers find credentials in addition to the pod's own secrets.
type Providers interface {
	// Credentials returns those for an image, in the order in which to try them. Providers that fail are left out.
	Credentials(ctx context.Context, pod *corev1.Pod, image string) []Credential
}

// Request is what became known about an image that was asked for; nil: it did not become known.
type Request struct {
	Policy corev1.PullPolicy
	// Present: it was on the node. Pull: it has to be pulled, as its policy says or for the pod to show that it may use
	// it.
	Present, Pull *bool
}

// Manager pulls images. It is safe for concurrent use. mu guards the back-offs and is not held during a pull.
type Manager struct {
	cfg   Config
	slots chan struct{} // nil: no limit
	holds *holds

	mu      sync.Mutex
	backOff map[string]delay
}

type delay struct {
	wait  time.Duration
	until time.Time
	msg   string
}

// New returns a Manager.
func New(cfg Config) *Manager {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	m := &Manager{cfg: cfg, backOff: map[string]delay{}, holds: newHolds()}
	switch {
	case cfg.Serialize:
		m.slots = make(chan struct{}, 1)
	case cfg.MaxParallel > 0:
		m.slots = make(chan struct{}, cfg.MaxParallel)
	}
	return m
}

// Ensure returns the image to run. name and policy are the container's. Every error is an *Error. An image that is
// present is used only if the pod may have it; otherwise the pod pulls it again with its own credentials, which is
// cheap, as the layers are present. The back-off is per pod, image and pull secrets: a corrected secret is tried at
// once.
func (m *Manager) Ensure(ctx context.Context, pod *corev1.Pod, name string, policy corev1.PullPolicy,
	secrets []corev1.Secret, ev Event) (*runtime.Image, error) {
	q := Request{Policy: policy}
	if m.cfg.Ensured != nil {
		defer func() { m.cfg.Ensured(q) }()
	}
	ref, err := normalize(name)
	if err != nil {
		msg := fmt.Sprintf("Failed to apply default image tag %q: couldn't parse image name %q: %v", name, name, err)
		ev(corev1.EventTypeWarning, "InspectFailed", msg)
		return nil, &Error{Reason: reasonInvalidImageName, msg: msg}
	}
	img, err := m.cfg.Service.Image(ctx, ref)
	if err != nil {
		msg := fmt.Sprintf("Failed to inspect image %q: %v", ref, err)
		ev(corev1.EventTypeWarning, "InspectFailed", msg)
		return nil, &Error{Reason: reasonInspectFailed, msg: msg}
	}
	q.Present = new(img != nil)
	own, err := credentials(ref, secrets)
	if err != nil {
		m.cfg.Log.Warn("a pull secret is unreadable", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
	usable := img != nil && policy != corev1.PullAlways && m.accessible(ctx, pod, ref, img.ID, own)
	q.Pull = new(!usable && (img != nil || policy != corev1.PullNever))
	if usable {
		ev(corev1.EventTypeNormal, "Pulled",
			fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", name))
		return img, nil
	}
	if policy == corev1.PullNever {
		msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", name)
		ev(corev1.EventTypeWarning, "ErrImageNeverPull", msg)
		return nil, &Error{Reason: ReasonErrImageNeverPull, msg: msg}
	}
	key := string(pod.UID) + "_" + ref + "_" + Fingerprint(secrets)
	if e := m.held(key, name); e != nil {
		ev(corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", name))
		return nil, e
	}
	pulled, err := m.pull(ctx, pod, key, name, ref, own, ev)
	if err == nil && (img == nil || img.ID != pulled.ID) {
		m.flush(ctx, ref)
	}
	return pulled, err
}

// flush has a new image written to the disk. Runtimes do not wait for that by default (containerd before 2.0 never): a
// machine that loses power soon after a pull then has an image of empty files, which counts as present for good.
func (m *Manager) flush(ctx context.Context, ref string) {
	if m.cfg.Flush == nil {
		return
	}
	if err := m.cfg.Flush(ctx); err != nil {
		m.cfg.Log.Warn("an image may not survive a loss of power", "image", ref, "err", err)
	}
}

// accessible reports whether a pod may use an image that is present. A pod that may not must pull it.
func (m *Manager) accessible(ctx context.Context, pod *corev1.Pod, ref, id string, own []Credential) bool {
	if m.cfg.Records == nil {
		return true
	}
	ok, why := m.check(ctx, pod, ref, id, own)
	if m.cfg.Checked != nil {
		m.cfg.Checked(why)
	}
	return ok
}

// check is accessible with its reason, for when records are kept. If a record cannot be read, the pod must pull, unless
// the policy never verifies.
func (m *Manager) check(ctx context.Context, pod *corev1.Pod, ref, id string, own []Credential) (bool, Check) {
	rec, begun, err := m.cfg.Records.Get(ref, id)
	if err != nil {
		m.cfg.Log.Error("an image has to be pulled again", "image", ref, "err", err)
		return !m.cfg.Verification.required(repository(ref), true), checkFailed
	}
	if !m.cfg.Verification.required(repository(ref), rec != nil || begun) {
		return true, checkAllowed
	}
	ok, again, err := allowed(rec, repository(ref), own, func() (*corev1.ServiceAccount, error) {
		if pod.Spec.ServiceAccountName == "" {
			return nil, nil
		}
		return m.cfg.Account(ctx, pod.Namespace, pod.Spec.ServiceAccountName)
	})
	if err == nil && again != nil {
		err = m.cfg.Records.Add(ref, id, again)
	}
	if err != nil {
		m.cfg.Log.Error("whether a pod may use an image is not known in full", "pod", pod.Namespace+"/"+pod.Name,
			"image", ref, "err", err)
	}
	switch {
	case ok:
		return true, checkFound
	case err != nil:
		return false, checkFailed
	default:
		return false, checkPull
	}
}

// held returns the error of the last pull while its delay has not passed, nil if a pull may be tried.
func (m *Manager) held(key, name string) *Error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.backOff[key]
	if !ok || !m.cfg.Now().Before(d.until) {
		return nil
	}
	return &Error{Reason: ReasonImagePullBackOff, Until: d.until,
		msg: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", name, d.msg)}
}

// errTooFast is upstream's, for a pull beyond the limit of pulls per second. It is tried again like any that failed.
var errTooFast = errors.New("pull QPS exceeded")

// pull waits for a slot and pulls. A cancelled pull leaves no back-off, because it says nothing about the image.
func (m *Manager) pull(ctx context.Context, pod *corev1.Pod, key, name, ref string, own []Credential,
	ev Event) (*runtime.Image, error) {
	start := m.cfg.Now()
	if m.slots != nil {
		select {
		case m.slots <- struct{}{}:
			defer func() { <-m.slots }()
		case <-ctx.Done():
			return nil, &Error{Reason: ReasonErrImagePull, msg: ctx.Err().Error()}
		}
	}
	ev(corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", name))
	begun := m.cfg.Now()
	var img *runtime.Image
	err := errTooFast
	if m.cfg.Allow == nil || m.cfg.Allow() {
		img, err = m.fetch(ctx, pod, ref, own)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, &Error{Reason: ReasonErrImagePull, msg: err.Error()}
		}
		msg := err.Error()
		ev(corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", name, err))
		ev(corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		return nil, &Error{Reason: ReasonErrImagePull, Until: m.failed(key, msg), msg: msg}
	}
	m.mu.Lock()
	delete(m.backOff, key)
	m.mu.Unlock()
	end := m.cfg.Now()
	if m.cfg.Pulled != nil {
		m.cfg.Pulled(img.Size, end.Sub(begun))
	}
	ev(corev1.EventTypeNormal, "Pulled",
		fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
			name, end.Sub(begun).Truncate(time.Millisecond), end.Sub(start).Truncate(time.Millisecond), img.Size))
	return img, nil
}

// fetch tries all credentials that fit, in order, and a pull without any if there are none. The intent is recorded
// before the pull and the credential after it: if the kubelet dies in between, the image counts as pulled with unknown
// credentials, so that no pod gets it for free.
func (m *Manager) fetch(ctx context.Context, pod *corev1.Pod, ref string, own []Credential) (img *runtime.Image,
	err error) {
	var with *Credential
	if r := m.cfg.Records; r != nil {
		if err := r.Pulling(ref); err != nil {
			return nil, err
		}
		defer func() {
			id := ""
			if img != nil {
				id = img.ID
			}
			if rerr := r.Pulled(ref, id, with); rerr != nil {
				m.cfg.Log.Error("what an image was pulled with is not recorded", "image", ref, "err", rerr)
			}
		}()
	}
	var tries []*Credential
	for i := range own {
		tries = append(tries, &own[i])
	}
	if m.cfg.Providers != nil {
		provided := m.cfg.Providers.Credentials(ctx, pod, ref)
		for i := range provided {
			tries = append(tries, &provided[i])
		}
	}
	if len(tries) == 0 {
		tries = append(tries, nil)
	}
	var errs []error
	for _, with = range tries {
		var auth *runtime.Auth
		if with != nil {
			auth = &with.Auth
		}
		id, err := m.cfg.Service.Pull(ctx, ref, auth, pod)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		img, err := m.cfg.Service.Image(ctx, id)
		if err == nil && img == nil {
			err = fmt.Errorf("image %s vanished after its pull", id)
		}
		return img, err
	}
	return nil, errors.Join(errs...)
}

// failed records a failed pull and returns when the next one may be tried. It drops delays that are long over: the map
// must not grow with every pod.
func (m *Manager) failed(key, msg string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	for k, d := range m.backOff {
		if now.Sub(d.until) > 2*backOffMax {
			delete(m.backOff, k)
		}
	}
	d := m.backOff[key]
	d.wait = min(max(2*d.wait, backOffInitial), backOffMax)
	d.until, d.msg = now.Add(d.wait), msg
	m.backOff[key] = d
	return d.until
}

// normalize adds the tag "latest" to a name that has neither tag nor digest. Names without a registry stay so: the
// runtime knows its default registry.
func normalize(name string) (string, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", err
	}
	_, tagged := named.(reference.Tagged)
	_, digested := named.(reference.Digested)
	if !tagged && !digested {
		return strings.TrimSuffix(name, ":") + ":latest", nil
	}
	return name, nil
}
