package pods

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// Conversation is what the verbs that talk to a container share: their flags, and how the container is found.
type Conversation struct {
	Session
	// Target is the argument that names the pod: "NAME", "pod/NAME", "deployment/NAME".
	Target string
	// Quiet shows only what the container says.
	Quiet bool

	timeout time.Duration
	client  *resource.Client
	config  *rest.Config
}

// AddFlags adds the flags.
func (c *Conversation) AddFlags(set *pflag.FlagSet) {
	set.StringVarP(&c.Container, "container", "c", "",
		"Container name. If omitted, use the kubectl.kubernetes.io/default-container annotation for selecting the container to be attached or the first container in the pod will be chosen")
	set.BoolVarP(&c.Stdin, "stdin", "i", false, "Pass stdin to the container")
	set.BoolVarP(&c.TTY, "tty", "t", false, "Stdin is a TTY")
	set.BoolVarP(&c.Quiet, "quiet", "q", false, "Only print output from the remote session")
	set.DurationVar(&c.timeout, "pod-running-timeout", time.Minute,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
}

// Connect gets the namespace and the clients from f.
func (c *Conversation) Connect(f *cli.Factory) (err error) {
	if c.Namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	if c.client, err = f.Resources(); err != nil {
		return err
	}
	c.config, err = f.RESTConfig()
	return err
}

// FromFiles makes the object of the files, which must be one, the target.
func (c *Conversation) FromFiles(ctx context.Context, files resource.Files) error {
	infos, err := c.client.Resolve(ctx, resource.Request{Files: files, Namespace: c.Namespace})
	if err != nil {
		return err
	}
	if len(infos) != 1 {
		return errors.New("cannot exec into multiple objects at a time")
	}
	c.Namespace, c.Target = infos[0].Namespace, infos[0].ResourceName()
	return nil
}

// Find finds the pod and settles which container is meant; a pod that has ended is refused with what was tried ("exec
// into").
func (c *Conversation) Find(ctx context.Context, doing string) (*corev1.Pod, error) {
	found, err := Find(ctx, c.client, c.Namespace, c.Target, c.timeout)
	if err != nil {
		return nil, err
	}
	pod := &found[0]
	if err := Finished(pod, doing); err != nil {
		return nil, err
	}
	note := c.Streams.ErrOut
	if c.Quiet {
		note = nil
	}
	c.Pod = pod.Name
	c.Container, err = Container(pod, c.Container, note)
	return pod, err
}

// Talk streams until the command in the container ends. What the container says arrives as it is.
func (c *Conversation) Talk(ctx context.Context) error {
	session := c.Session
	session.Streams = c.Streams.Raw()
	return session.Run(ctx, c.client, c.config)
}

// Attach streams until what the container runs ends, or the user detaches.
func (c *Conversation) Attach(ctx context.Context, pod *corev1.Pod, detachKeys string) error {
	session := c.Session
	session.Streams = c.Streams.Raw()
	return Attachment{Session: session, Quiet: c.Quiet, DetachKeys: detachKeys}.Run(ctx, c.client, c.config, pod)
}
