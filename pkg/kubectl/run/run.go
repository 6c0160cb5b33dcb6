// Package run is "kubectl run": one pod from an image, checked before any request, and attached to if asked.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Start a nginx pod
  kubectl run nginx --image=nginx

  # Start a hazelcast pod and let the container expose port 5701
  kubectl run hazelcast --image=hazelcast/hazelcast --port=5701

  # Start a busybox pod and keep it in the foreground, don't restart it if it exits
  kubectl run -i -t busybox --image=busybox --restart=Never

  # Start the nginx pod using a different command and custom arguments
  kubectl run nginx --image=nginx --command -- sleep 60`

// Options is one run of "kubectl run".
type Options struct {
	write.Base
	spec      spec
	overrides write.Overrides
	factory   *cli.Factory

	image, pull    string
	attach, rm     bool
	expose, quiet  bool
	runningTimeout time.Duration
	detachKeys     string
	// deletion is how --rm deletes.
	deletion write.Deletion
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags("kubectl-run"), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "run NAME --image=image [--env=\"key=value\"] [--port=port] [--dry-run=server|client] [--overrides=inline-json] [--command] -- [COMMAND] [args...]",
		Short:   "Run a particular image on the cluster",
		Long:    "Create and run a particular image in a pod.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddManager(set)
	o.AddRecord(cmd)
	o.AddSaveConfig(set)
	o.overrides.AddFlags(set)
	set.StringArrayVar(&o.spec.annotations, "annotations", nil, "Annotations to apply to the pod.")
	set.StringVar(&o.image, "image", "", "The image for the container to run.")
	_ = cmd.MarkFlagRequired("image") // the flag was added above
	set.StringVar(&o.pull, "image-pull-policy", "",
		"The image pull policy for the container.  If left empty, this value will not be specified by the client and defaulted by the server.")
	set.BoolVar(&o.rm, "rm", false,
		"If true, delete the pod after it exits.  Only valid when attaching to the container, e.g. with '--attach' or with '-i/--stdin'.")
	set.StringArrayVar(&o.spec.env, "env", nil, "Environment variables to set in the container.")
	set.StringVar(&o.spec.port, "port", "", "The port that this container exposes.")
	set.StringVarP(&o.spec.labels, "labels", "l", "",
		"Comma separated labels to apply to the pod. Will override previous values.")
	set.BoolVarP(&o.spec.stdin, "stdin", "i", false,
		"Keep stdin open on the container in the pod, even if nothing is attached.")
	set.BoolVarP(&o.spec.tty, "tty", "t", false, "Allocate a TTY for the container in the pod.")
	set.BoolVar(&o.attach, "attach", false,
		"If true, wait for the Pod to start running, and then attach to the Pod as if 'kubectl attach ...' were called.  Default false, unless '-i/--stdin' is set, in which case the default is true. With '--restart=Never' the exit code of the container process is returned.")
	set.BoolVar(&o.spec.leaveStdinOpen, "leave-stdin-open", false,
		"If the pod is started in interactive mode or with stdin, leave stdin open after the first attach completes. By default, stdin will be closed after the first attach completes.")
	set.StringVar(&o.spec.restart, "restart", "Always",
		"The restart policy for this Pod.  Legal values [Always, OnFailure, Never].")
	set.BoolVar(&o.spec.command, "command", false,
		"If true and extra arguments are present, use them as the 'command' field in the container, rather than the 'args' field which is the default.")
	set.BoolVar(&o.expose, "expose", false,
		"If true, create a ClusterIP service associated with the pod.  Requires `--port`.")
	set.BoolVarP(&o.quiet, "quiet", "q", false, "If true, suppress prompt messages.")
	set.BoolVar(&o.spec.privileged, "privileged", false, "If true, run the container in privileged mode.")
	set.DurationVar(&o.runningTimeout, "pod-running-timeout", time.Minute,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
	pods.AddDetachKeys(set, &o.detachKeys)
	o.deletion.AddFlags(set, false)
	// Kubernetes' kubectl has these, and does nothing with them.
	new(resource.Files).AddFlags(set, "to use to replace the resource.")
	_ = set.MarkDeprecated("filename", ignored) // the flags were added above
	_ = set.MarkShorthandDeprecated("filename", ignored)
}

// ignored is what is said of a flag that does nothing.
const ignored = "it is ignored by kubectl run and will be removed in a future release"

// Complete reads the arguments.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) error {
	o.factory = f
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return errors.New("NAME is required for run")
	}
	if !cmd.Flags().Changed("attach") && (o.spec.stdin || o.spec.tty) {
		o.attach = true
	}
	if o.spec.name, o.spec.args = args[0], args[1:]; o.spec.name == "" {
		return errors.New("Parameter: name is required")
	}
	o.spec.image, o.spec.pull = o.image, o.pull
	return o.deletion.Complete(o.ErrOut)
}

// Validate checks everything that needs no server, the image's name first of all.
func (o *Options) Validate() error {
	if o.runningTimeout <= 0 {
		return errors.New("--pod-running-timeout must be higher than zero")
	}
	if o.image == "" {
		return errors.New("--image is required")
	}
	if err := write.CheckImage(o.image); err != nil {
		return fmt.Errorf("invalid image name %q: %w", o.image, err)
	}
	if o.spec.tty && !o.spec.stdin {
		return errors.New("-i/--stdin is required for containers with -t/--tty=true")
	}
	if o.expose && o.spec.port == "" {
		return errors.New("--port must be set when exposing a service")
	}
	if err := o.Flags.Complete(o.ErrOut); err != nil {
		return err
	}
	if o.rm && !o.attach {
		return errors.New("--rm should only be used for attached containers")
	}
	if o.attach && o.DryRun != write.DryRunNone {
		return errors.New(
			"--dry-run=[server|client] can't be used with attached containers options (--attach, --stdin, or --tty)")
	}
	switch corev1.RestartPolicy(o.spec.restart) {
	case corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	default:
		return fmt.Errorf("invalid restart policy: %s, valid values are: %s, %s, %s", o.spec.restart,
			corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	}
	switch corev1.PullPolicy(o.pull) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return fmt.Errorf("invalid image pull policy: %s, valid values are: %s, %s, %s", o.pull, corev1.PullAlways,
			corev1.PullIfNotPresent, corev1.PullNever)
	}
	_, err := o.Printer("created")
	return err
}

// Run makes the pod, with --expose its service after it, and attaches if asked.
func (o *Options) Run(ctx context.Context) error {
	ns, explicit, err := o.factory.Namespace()
	if err != nil {
		return err
	}
	if o.Namespace = ns; explicit {
		o.spec.namespace = ns
	}
	pod, err := o.spec.pod()
	if err != nil {
		return err
	}
	service, err := o.service(pod)
	if err != nil {
		return err
	}
	if o.overrides.Patch != "" {
		out := &corev1.Pod{}
		if err := o.overrides.Apply(pod, out); err != nil {
			return err
		}
		pod = out
	}
	if o.Client, err = o.factory.Resources(); err != nil {
		return err
	}
	return o.make(ctx, service, pod)
}

// service is the service of --expose, nil without it.
func (o *Options) service(pod *corev1.Pod) (*corev1.Service, error) {
	if !o.expose {
		return nil, nil
	}
	return o.spec.service(pod)
}

func (o *Options) make(ctx context.Context, service *corev1.Service, pod *corev1.Pod) error {
	p, err := o.Printer("created")
	if err != nil {
		return err
	}
	o.SaveConfig = o.SaveConfig && o.DryRun != write.DryRunClient
	if err := o.Record(pod); err != nil {
		return err
	}
	made, err := o.Post(ctx, pod)
	if err != nil {
		return err
	}
	if silent := o.attach || o.quiet && o.Print.Output == ""; !silent {
		if err := p.Print(made, o.Out); err != nil {
			return err
		}
	}
	if service != nil {
		s, err := o.Post(ctx, service)
		if err != nil {
			return err
		}
		if err := p.Print(s, o.Out); err != nil {
			return err
		}
	}
	if o.attach {
		return o.attachTo(ctx, made.(*corev1.Pod))
	}
	return nil
}
