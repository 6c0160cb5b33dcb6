// Package debug is "kubectl debug": an ephemeral container in a pod, a copy of a pod with a container changed or added,
// or a pod in the namespaces of a node.
package debug

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

const example = `  # Add a container to pod mypod, and attach to it
  kubectl debug mypod -it --image=busybox

  # Name the container, and see the processes of the pod's container app
  kubectl debug --image=busybox -c debugger --target=app mypod

  # Copy mypod with a container more, and attach to that
  kubectl debug mypod -it --image=busybox --copy-to=my-debugger

  # Copy mypod with another command in one container
  kubectl debug mypod -it --copy-to=my-debugger --container=mycontainer -- sh

  # Copy mypod with other images
  kubectl debug mypod --copy-to=my-debugger --set-image=*=busybox

  # Run a pod in the namespaces of a node, whose files are at /host
  kubectl debug node/mynode -it --image=busybox`

// Options is one run of "kubectl debug".
type Options struct {
	cli.IOStreams
	files resource.Files
	names []string
	wish  wish
	keep  keep

	profile, custom string
	copyTo          string
	replace         bool
	attach, quiet   bool

	factory   *cli.Factory
	client    *resource.Client
	config    *rest.Config
	namespace string
}

// wish holds the user's settings of the container, and of the pod that gets it.
type wish struct {
	container, image, pull, target string
	args                           []string
	argsOnly, stdin, tty           bool
	env, images                    map[string]string
	sameNode                       bool
	// share is nil if the flag is not given: the profile decides then.
	share *bool
	// partial is the container of --custom, which is merged over the new one; nil without the flag.
	partial *corev1.Container
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "debug (POD | TYPE[[.VERSION].GROUP]/NAME) [ -- COMMAND [args...] ]",
		Short: "Create debugging sessions for troubleshooting workloads and nodes",
		Long: "Debug cluster resources using interactive debugging containers.\n\n" +
			" A pod gets an ephemeral container, or with --copy-to a copy in which containers are changed or added. A node gets a pod that runs in its namespaces and sees its files.\n\n" +
			" Where a pod runs as another user than root, what a profile grants may not work.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	o.files.AddFlags(set, "identifying the resource to debug")
	set.BoolVar(&o.wish.argsOnly, "arguments-only", false,
		"If specified, everything after -- will be passed to the new container as Args instead of Command.")
	set.BoolVar(&o.attach, "attach", false,
		"If true, wait for the container to start running, and then attach as if 'kubectl attach ...' were called.  Default false, unless '-i/--stdin' is set, in which case the default is true.")
	set.StringVarP(&o.wish.container, "container", "c", "", "Container name to use for debug container.")
	set.StringVar(&o.copyTo, "copy-to", "", "Create a copy of the target Pod with this name.")
	set.StringVar(&o.custom, "custom", "",
		"Path to a JSON or YAML file containing a partial container spec to customize built-in debug profiles.")
	set.StringToStringVar(&o.wish.env, "env", nil, "Environment variables to set in the container.")
	set.StringVar(&o.wish.image, "image", "", "Container image to use for debug container.")
	set.StringVar(&o.wish.pull, "image-pull-policy", "",
		"The image pull policy for the container. If left empty, this value will not be specified by the client and defaulted by the server.")
	o.keep.addFlags(set)
	set.StringVar(&o.profile, "profile", general,
		`Options are "general", "baseline", "restricted", "netadmin" or "sysadmin". Defaults to "general"`)
	set.BoolVarP(&o.quiet, "quiet", "q", false, "If true, suppress informational messages.")
	set.BoolVar(&o.replace, "replace", false, "When used with '--copy-to', delete the original Pod.")
	set.BoolVar(&o.wish.sameNode, "same-node", false,
		"When used with '--copy-to', schedule the copy of target Pod on the same node.")
	set.StringToStringVar(&o.wish.images, "set-image", nil,
		"When used with '--copy-to', a list of name=image pairs for changing container images, similar to how 'kubectl set image' works.")
	set.Bool("share-processes", true, "When used with '--copy-to', enable process namespace sharing in the copy.")
	set.BoolVarP(&o.wish.stdin, "stdin", "i", false,
		"Keep stdin open on the container(s) in the pod, even if nothing is attached.")
	set.StringVar(&o.wish.target, "target", "",
		"When using an ephemeral container, target processes in this container name.")
	set.BoolVarP(&o.wish.tty, "tty", "t", false, "Allocate a TTY for the debugging container.")
}

// Complete reads the arguments.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	o.factory, o.names = f, args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		o.names, o.wish.args = args[:dash], args[dash:]
	}
	if o.wish.stdin && !cmd.Flags().Changed("attach") {
		o.attach = true
	}
	if cmd.Flags().Changed("share-processes") {
		share, err := cmd.Flags().GetBool("share-processes")
		if err != nil {
			return err
		}
		o.wish.share = &share
	}
	if o.profile == legacy {
		fmt.Fprintln(o.ErrOut, `--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for example "--profile=general".`)
		o.keep = keep{annotations: true, liveness: true, readiness: true, startup: true, initContainers: true}
	}
	return nil
}

// Run debugs one object after the other, until one cannot be.
func (o *Options) Run(ctx context.Context) (err error) {
	if o.namespace, _, err = o.factory.Namespace(); err != nil {
		return err
	}
	if o.client, err = o.factory.Resources(); err != nil {
		return err
	}
	if o.config, err = o.factory.RESTConfig(); err != nil {
		return err
	}
	if !o.files.Empty() {
		infos, err := o.client.Resolve(ctx, resource.Request{Files: o.files, Namespace: o.namespace, Latest: true})
		return resource.Each(infos, err, func(i *resource.Info) error { return o.debug(ctx, i) })
	}
	for _, name := range o.names {
		args := []string{name}
		if !strings.Contains(name, "/") {
			args = []string{"pods", name}
		}
		infos, err := o.client.Resolve(ctx, resource.Request{Args: args, Namespace: o.namespace})
		if err := resource.Each(infos, err, func(i *resource.Info) error { return o.debug(ctx, i) }); err != nil {
			return err
		}
	}
	return nil
}

// debug makes the container for one object, and attaches to it if asked.
func (o *Options) debug(ctx context.Context, i *resource.Info) error {
	var pod *corev1.Pod
	var container string
	var err error
	switch gvk := i.Mapping.GroupVersionKind; gvk.GroupKind() {
	case schema.GroupKind{Kind: "Node"}:
		pod, container, err = o.onNode(ctx, i.Name)
	case schema.GroupKind{Kind: "Pod"}:
		target := &corev1.Pod{}
		if err := resource.FromUnstructured(i.Object, target); err != nil {
			return err
		}
		if o.copyTo != "" {
			pod, container, err = o.inCopy(ctx, target)
		} else {
			pod, container, err = o.inPod(ctx, target)
		}
	default:
		return fmt.Errorf("%q not supported by debug", gvk.String())
	}
	if err != nil || !o.attach || container == "" {
		return err
	}
	return o.attachTo(ctx, pod, container)
}

// say prints a message, unless -q is given.
func (o *Options) say(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(o.Out, format+"\n", args...)
	}
}

// warn warns that the profile's capabilities may have no effect, because the pod runs as another user than root: a
// process of another user does not get the capabilities of its container.
func (o *Options) warn(pod *corev1.Pod, c *corev1.Container) {
	s := pod.Spec.SecurityContext
	if s == nil || s.RunAsUser == nil || *s.RunAsUser == 0 ||
		!slices.Contains([]string{general, netadmin, sysadmin}, o.profile) {
		return
	}
	if own := c.SecurityContext; own != nil && own.RunAsUser != nil && *own.RunAsUser == 0 {
		return
	}
	fmt.Fprintln(o.ErrOut, `Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may not work. Please consider using "--custom" with a custom profile that specifies "securityContext.runAsUser: 0".`)
}
