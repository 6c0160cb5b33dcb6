package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
)

// retryAfter is the pause before a container that could not be made is tried again.
//
// A wrong configuration seldom heals by itself, and each try costs requests; the worker still wakes for every change.
const retryAfter = 10 * time.Second

// startError is why a container was not started, as its status shows it. until is when to try again; zero: after
// retryAfter.
type startError struct {
	reason string
	err    error
	until  time.Time
}

// Error is the message of the container's status.
func (e *startError) Error() string { return e.err.Error() }

// start brings one container up. A startError becomes the reason why the container waits, and is no error of the step:
// the next container still gets its turn. Other errors, and the end of ctx, end the step.
func (e *Executor) start(ctx context.Context, f lifecycle.Facts, p *Pod, s lifecycle.Start) error {
	name, past := s.Container.Name, p.starts(s.Container)
	past.secrets = ""
	err := e.tryStart(ctx, f, p, s)
	if err == nil {
		past.reason, past.retry = lifecycle.Reason{}, time.Time{}
		e.cfg.Metrics.StartedContainer(s.Kind, "")
		return nil
	}
	var se *startError
	if ctx.Err() != nil || !errors.As(err, &se) {
		return err
	}
	e.cfg.Log.Info("container not started", "pod", runtime.FullName(f.Pod), "container", name, "reason", se.reason,
		"err", se.err)
	e.cfg.Metrics.StartedContainer(s.Kind, se.reason)
	past.reason = lifecycle.Reason{Reason: se.reason, Message: se.Error()}
	if se.until.IsZero() {
		se.until = time.Now().Add(retryAfter)
	}
	past.retry = se.until
	return nil
}

// tryStart pulls, creates and starts a container. The images stay held until the container exists, because the garbage
// collection could remove them in between. The restart is counted for the back-off only once the container was created:
// failures before that have their own delay.
func (e *Executor) tryStart(ctx context.Context, f lifecycle.Facts, p *Pod, s lifecycle.Start) error {
	pod, c := f.Pod, s.Container
	now := time.Now()
	pull := now
	img, release, err := e.holdImage(ctx, pod, p, c, c.Image, c.ImagePullPolicy)
	p.waited += time.Since(pull)
	e.spans.didPull(pod, c, pull, img, err)
	if err != nil {
		return err
	}
	defer release()
	if !p.prepared {
		if err := e.mount(ctx, pod, p); err != nil {
			return err
		}
	}
	mounted, releaseMounted, err := e.imageVolumes(ctx, pod, p, c)
	if err != nil {
		return err
	}
	defer releaseMounted()
	begun := time.Now()
	req, err := e.request(ctx, f, p, s, img, mounted)
	if err != nil {
		e.cfg.Events.Container(pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+err.Error())
		failed := &startError{reason: "CreateContainerConfigError", err: err}
		e.spans.didContainer(pod, c, "create", begun, failed)
		return failed
	}
	id, err := e.cfg.Runtime.CreateContainer(ctx, req)
	if e.countImageVolumes(len(mounted), err); err != nil {
		e.cfg.Events.Container(pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+e.cause(err))
		failed := &startError{reason: "CreateContainerError", err: errors.New(e.cause(err))}
		e.spans.didContainer(pod, c, "create", begun, failed)
		return failed
	}
	e.spans.didContainer(pod, c, "create", begun, nil)
	e.cfg.Events.Container(pod, c.Name, corev1.EventTypeNormal, "Created", "Container created")
	if ended := lastExited(f.Runtime, c.Name); ended != nil {
		past := p.starts(c)
		past.backOff = past.backOff.Restarted(ended.FinishedAt, now, e.cfg.MaxBackOff)
	}
	begun = time.Now()
	if err := e.cfg.Runtime.StartContainer(ctx, id); err != nil {
		e.cfg.Events.Container(pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+e.cause(err))
		failed := &startError{reason: "RunContainerError", err: errors.New(e.cause(err)), until: now}
		e.spans.didContainer(pod, c, "start", begun, failed)
		return failed
	}
	e.spans.didContainer(pod, c, "start", begun, nil)
	e.cfg.Allocations.Actuated(pod.UID, c.Name, runtime.Effective(pod, c))
	e.cfg.Events.Container(pod, c.Name, corev1.EventTypeNormal, "Started", "Container started")
	log := logs.Container{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Name: c.Name, ID: id,
		Attempt: s.Attempt}
	if err := e.cfg.Logs.Link(log); err != nil {
		e.cfg.Log.Warn("a container's log has no link", "pod", runtime.FullName(pod), "container", c.Name, "err", err)
	}
	return e.postStart(ctx, f, c, id)
}

// postStart runs the hook that follows the start, without a time limit of its own. A failure ends the container, which
// then restarts by its policy.
func (e *Executor) postStart(ctx context.Context, f lifecycle.Facts, c *corev1.Container, id string) error {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	begun := time.Now()
	err := e.hook(ctx, f.Pod, c, id, c.Lifecycle.PostStart)
	if err == nil {
		e.spans.didContainer(f.Pod, c, "poststart", begun, nil)
		return nil
	}
	failed := &startError{reason: "PostStartHookError", err: errors.New("PostStartHook failed"), until: time.Now()}
	e.spans.didContainer(f.Pod, c, "poststart", begun, failed)
	e.cfg.Events.Container(f.Pod, c.Name, corev1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	e.cfg.Log.Info("postStart hook failed", "pod", runtime.FullName(f.Pod), "container", c.Name, "err", err)
	if kerr := e.cfg.Runtime.StopContainer(ctx, id, podGrace(f.Pod)); kerr != nil {
		return kerr
	}
	failed.until = time.Now()
	return failed
}

// cause returns the runtime's own text of a failed call, without what the CRI client added: it goes into the status.
func (e *Executor) cause(err error) string {
	if u := errors.Unwrap(err); u != nil {
		err = u
	}
	return e.cfg.Message(err)
}

// holdImage is ensureImage that also protects the image from garbage collection until release is called.
func (e *Executor) holdImage(ctx context.Context, pod *corev1.Pod, p *Pod, c *corev1.Container, image string,
	policy corev1.PullPolicy) (*runtime.Image, func(), error) {
	return e.cfg.Images.Hold(ctx, func() (*runtime.Image, error) {
		return e.ensureImage(ctx, pod, p, c, image, policy)
	})
}

// ensureImage brings an image that the container needs to the node. A pull secret that cannot be read does not stop the
// pull: the image may be public or on the node. It gets an event if the pull fails. A failed pull shows as ErrImagePull
// for a second, and as ImagePullBackOff after that.
//
// Concurrent pulls of one image, and the node's limit of pulls, are the concern of package images.
func (e *Executor) ensureImage(ctx context.Context, pod *corev1.Pod, p *Pod, c *corev1.Container, image string,
	policy corev1.PullPolicy) (*runtime.Image, error) {
	secrets, missing := e.pullSecrets(ctx, pod)
	past := p.starts(c)
	img, err := e.cfg.Images.Ensure(ctx, pod, image, policy, secrets,
		func(kind, reason, msg string) {
			if reason == "BackOff" && past.reason.Reason == images.ReasonImagePullBackOff {
				return
			}
			e.cfg.Events.Container(pod, c.Name, kind, reason, msg)
		})
	var ie *images.Error
	if errors.As(err, &ie) {
		if missing != nil && ie.Reason != images.ReasonImagePullBackOff {
			e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret", missing.Error())
		}
		until := ie.Until
		if ie.Reason == images.ReasonErrImagePull && !until.IsZero() {
			until = time.Now().Add(time.Second) // then it is shown as backing off
		}
		if ie.Reason == images.ReasonImagePullBackOff {
			e.cfg.Events.Container(pod, c.Name, corev1.EventTypeWarning, "Failed", "Error: "+ie.Reason)
		}
		past.secrets = images.Fingerprint(secrets)
		return nil, &startError{reason: ie.Reason, err: ie, until: until}
	}
	return img, err
}

// RetryPulls cancels the delay of containers that wait for an image, if the pod's pull secrets have changed since the
// failure: the user has probably just corrected them.
//
// Without it a corrected secret would wait for up to five minutes of back-off.
func (e *Executor) RetryPulls(ctx context.Context, pod *corev1.Pod, p *Pod) {
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return
	}
	for c := range runtime.Containers(pod) {
		past := p.starts(c)
		if past.secrets == "" {
			continue
		}
		if secrets, err := e.pullSecrets(ctx, pod); err == nil && images.Fingerprint(secrets) != past.secrets {
			past.retry, past.secrets = time.Time{}, ""
		}
	}
}

// pullSecrets reads the pod's pull secrets. The error names those that are missing; the others are returned anyway.
func (e *Executor) pullSecrets(ctx context.Context, pod *corev1.Pod) ([]corev1.Secret, error) {
	var out []corev1.Secret
	var missing []string
	for _, r := range pod.Spec.ImagePullSecrets {
		if r.Name == "" {
			continue
		}
		s, err := e.cfg.Secret(ctx, pod.Namespace, r.Name)
		if err != nil {
			missing = append(missing, r.Name)
			continue
		}
		out = append(out, *s)
	}
	if len(missing) > 0 {
		return out, fmt.Errorf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", "))
	}
	return out, nil
}

// request builds the runtime's description of a container; its errors are for the user to fix. mounted are the images
// of its image volumes, by volume name. The user is checked first: nothing is made for a container that may not run.
func (e *Executor) request(ctx context.Context, f lifecycle.Facts, p *Pod, s lifecycle.Start, img *runtime.Image,
	mounted map[string]string) (runtime.ContainerRequest, error) {
	pod, c := f.Pod, s.Container
	if err := checkUser(pod, c, img); err != nil {
		return runtime.ContainerRequest{}, err
	}
	ips := e.podIPs(pod, f.Runtime)
	vars, err := e.cfg.Environment(ctx, pod, c, Addresses{Pod: ips, Host: e.cfg.Node.HostIPs()}, p.mounts)
	if err != nil {
		return runtime.ContainerRequest{}, err
	}
	o := runtime.ContainerOptions{Attempt: s.Attempt, ImageRef: img.ID, ImageUID: img.UID, ImageUser: img.Username}
	for _, v := range vars {
		o.Env = append(o.Env, runtime.KeyValue{Name: v.Name, Value: v.Value})
	}
	o.Command, o.Args = env.Command(c, vars)
	if o.Mounts, err = e.mounts(pod, p, c, ips, mountInput{vars, mounted, e.handler(f.Runtime)}); err != nil {
		return runtime.ContainerRequest{}, err
	}
	if o.Devices, err = volumeDevices(p, c); err != nil {
		return runtime.ContainerRequest{}, err
	}
	if err := e.cfg.Resources.Starting(ctx, pod, c); err != nil {
		return runtime.ContainerRequest{}, err
	}
	if err := e.cfg.Resources.Container(pod, c, &o); err != nil {
		return runtime.ContainerRequest{}, err
	}
	if s.Kind == runtime.Ephemeral {
		if o.TargetID, err = targetOf(pod, c.Name, f.Runtime); err != nil {
			return runtime.ContainerRequest{}, err
		}
	}
	dir := filepath.Join(e.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID), c.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return runtime.ContainerRequest{}, fmt.Errorf("make the container's log directory: %w", err)
	}
	sandbox := f.Runtime.Sandbox()
	return runtime.ContainerRequest{SandboxID: sandbox.ID, Pod: pod, Container: c, Hash: lifecycle.Hash(c), Options: o,
		Sandbox: e.sandboxOptions(pod, f.Runtime, sandbox.Attempt), Node: e.cfg.Capacity}, nil
}

// targetOf returns the id of the container whose processes an ephemeral container is to see, "" for none. A target that
// the runtime does not have yet is an error: the container is tried again later.
func targetOf(pod *corev1.Pod, name string, rt *runtime.PodStatus) (string, error) {
	for _, e := range pod.Spec.EphemeralContainers {
		if e.Name == name && e.TargetContainerName != "" {
			if t := rt.Container(e.TargetContainerName); t != nil {
				return t.ID.ID, nil
			}
			return "", fmt.Errorf("unable to find target container %s", e.TargetContainerName)
		}
	}
	return "", nil
}

// checkUser refuses a container that must not run as root (runAsNonRoot) and would, or whose user is a name, which only
// the image could resolve to a number. The container's settings override the pod's.
func checkUser(pod *corev1.Pod, c *corev1.Container, img *runtime.Image) error {
	var nonRoot *bool
	var uid *int64
	if ps := pod.Spec.SecurityContext; ps != nil {
		nonRoot, uid = ps.RunAsNonRoot, ps.RunAsUser
	}
	if cs := c.SecurityContext; cs != nil {
		if cs.RunAsNonRoot != nil {
			nonRoot = cs.RunAsNonRoot
		}
		if cs.RunAsUser != nil {
			uid = cs.RunAsUser
		}
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case nonRoot == nil || !*nonRoot:
		return nil
	case uid != nil:
		if *uid == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
		}
		return nil
	case img.UID != nil && *img.UID == 0:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	case img.UID == nil && img.Username != "":
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", img.Username, where)
	case img.UID == nil:
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	}
	return nil
}
