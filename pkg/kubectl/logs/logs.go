// Package logs prints what containers wrote.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// Options is one run of logs.
type Options struct {
	cli.IOStreams
	follow, previous, timestamps, prefix, allContainers, allPods, ignoreErrors, insecure bool
	container, sinceTime, selector, namespace                                            string
	tail, limit                                                                          int64
	since, podTimeout                                                                    time.Duration
	maxRequests                                                                          int
	target                                                                               string
	client                                                                               *resource.Client
}

const expected = "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command"

// NewCommand returns "kubectl logs".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]",
		Short: "Print the logs for a container in a pod",
		Long:  "Print the logs for a container in a pod or specified resource. If the pod has only one container, the container name is optional.",
		Example: `
# Return snapshot logs from pod nginx with only one container
kubectl logs nginx

# Begin streaming the logs from all containers in pods defined by label app=nginx
kubectl logs -f -l app=nginx --all-containers=true

# Return snapshot logs from first container of a deployment named hello
kubectl logs deployment/hello`,
		RunE: cli.RunE(f, o),
	}
	set := cmd.Flags()
	set.BoolVarP(&o.follow, "follow", "f", false, "Specify if the logs should be streamed.")
	set.BoolVarP(&o.previous, "previous", "p", false,
		"If true, print the logs for the previous instance of the container in a pod if it exists.")
	set.BoolVar(&o.timestamps, "timestamps", false, "Include timestamps on each line in the log output")
	set.BoolVar(&o.prefix, "prefix", false, "Prefix each log line with the log source (pod name and container name)")
	set.BoolVar(&o.allContainers, "all-containers", false, "Get all containers' logs in the pod(s).")
	set.BoolVar(&o.allPods, "all-pods", false, "Get logs from all pod(s). Sets prefix to true.")
	set.BoolVar(&o.ignoreErrors, "ignore-errors", false,
		"If watching / following pod logs, allow for any errors that occur to be non-fatal")
	set.BoolVar(&o.insecure, "insecure-skip-tls-verify-backend", false,
		"Skip verifying the identity of the kubelet that logs are requested from.  In theory, an attacker could provide invalid log content back. You might want to use this if your kubelet serving certificates have expired.")
	set.StringVarP(&o.container, "container", "c", "", "Print the logs of this container")
	set.StringVar(&o.sinceTime, "since-time", "",
		"Only return logs after a specific date (RFC3339). Defaults to all logs. Only one of since-time / since may be used.")
	set.DurationVar(&o.since, "since", 0,
		"Only return logs newer than a relative duration like 5s, 2m, or 3h. Defaults to all logs. Only one of since-time / since may be used.")
	set.DurationVar(&o.podTimeout, "pod-running-timeout", 20*time.Second,
		"The length of time (like 5s, 2m, or 3h, higher than zero) to wait until at least one pod is running")
	set.StringVarP(&o.selector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.Int64Var(&o.tail, "tail", -1,
		"Lines of recent log file to display. Defaults to -1 with no selector, showing all log lines otherwise 10, if a selector is provided.")
	set.Int64Var(&o.limit, "limit-bytes", 0, "Maximum bytes of logs to return. Defaults to no limit.")
	set.IntVar(&o.maxRequests, "max-log-requests", 5,
		"Specify maximum number of concurrent logs to follow when using by a selector. Defaults to 5.")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	switch {
	case len(args) == 0 && o.selector == "", len(args) > 2:
		return cli.UsageErrorf(cmd, "%s", expected)
	case len(args) > 0 && o.selector != "":
		return cli.UsageErrorf(cmd, "only a selector (-l) or a POD name is allowed")
	case len(args) == 2 && o.container != "":
		return cli.UsageErrorf(cmd, "only one of -c or an inline [CONTAINER] arg is allowed")
	}
	if len(args) > 0 {
		if o.target = args[0]; o.target == "" {
			return resource.ErrNoResource
		}
	}
	if len(args) == 2 {
		o.container = args[1]
	}
	if o.selector != "" && !cmd.Flags().Changed("tail") {
		o.tail = 10
	}
	o.prefix = o.prefix || o.allPods
	if o.namespace, _, err = f.Namespace(); err != nil {
		return err
	}
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	switch {
	case o.since != 0 && o.sinceTime != "":
		return errors.New("at most one of `sinceTime` or `sinceSeconds` may be specified")
	case o.allContainers && o.container != "":
		return errors.New("--all-containers=true should not be specified with container name " + o.container)
	case o.tail < -1:
		return errors.New("--tail must be greater than or equal to -1")
	case o.limit < 0:
		return errors.New("--limit-bytes must be greater than 0")
	case o.since < 0:
		return errors.New("--since must be greater than 0")
	}
	if o.sinceTime != "" {
		if _, err := time.Parse(time.RFC3339, o.sinceTime); err != nil {
			return err
		}
	}
	return nil
}

// source is one container's log.
type source struct {
	pod       *corev1.Pod
	container string
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	sources, err := o.sources(ctx)
	if err != nil {
		return err
	}
	if o.follow && len(sources) > 1 {
		if len(sources) > o.maxRequests {
			return fmt.Errorf("you are attempting to follow %d log streams, but maximum allowed concurrency is %d, use --max-log-requests to increase the limit", len(sources), o.maxRequests)
		}
		return o.together(ctx, sources)
	}
	for _, s := range sources {
		if err := o.copy(ctx, s, o.Raw().Out); err != nil {
			if !o.ignoreErrors {
				return err
			}
			fmt.Fprintf(o.Out, "error: %v\n", err)
		}
	}
	return nil
}

// sources are the logs that were asked for.
func (o *Options) sources(ctx context.Context) ([]source, error) {
	found, err := o.pods(ctx)
	if err != nil {
		return nil, err
	}
	var out []source
	for i := range found {
		p := &found[i]
		if o.allContainers {
			for _, c := range p.Spec.InitContainers {
				out = append(out, source{p, c.Name})
			}
			for _, c := range p.Spec.Containers {
				out = append(out, source{p, c.Name})
			}
			for _, c := range p.Spec.EphemeralContainers {
				out = append(out, source{p, c.Name})
			}
			continue
		}
		name, err := pods.Container(p, o.container, o.ErrOut)
		if err != nil {
			return nil, err
		}
		out = append(out, source{p, name})
	}
	return out, nil
}

func (o *Options) pods(ctx context.Context) ([]corev1.Pod, error) {
	if o.target == "" {
		found, err := pods.List(ctx, o.client, o.namespace, o.selector)
		if err == nil && len(found) == 0 {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.namespace)
		}
		return found, err
	}
	found, err := pods.Find(ctx, o.client, o.namespace, o.target, o.podTimeout)
	if none := (*pods.NoSelectorError)(nil); errors.As(err, &none) {
		return nil, fmt.Errorf("cannot get the logs from *v1.%s: %w", none.Kind, none)
	}
	if err != nil {
		return nil, pods.NotFound(err, o.namespace)
	}
	if len(found) > 1 && !o.allPods {
		fmt.Fprintf(o.ErrOut, "Found %d pods, using pod/%s\n", len(found), found[0].Name)
		found = found[:1]
	}
	return found, nil
}

// together follows several logs, whole lines of each.
func (o *Options) together(ctx context.Context, sources []source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &lineWriter{w: o.Raw().Out}
	errs := make(chan error, len(sources))
	for _, s := range sources {
		go func() { errs <- o.copy(ctx, s, out) }()
	}
	for range sources {
		if err := <-errs; err != nil {
			if !o.ignoreErrors {
				return err
			}
			fmt.Fprintf(out, "error: %s\n", printers.Escape(err.Error()))
		}
	}
	return nil
}

// lineWriter takes whole lines from several writers.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// copy writes one log to w.
func (o *Options) copy(ctx context.Context, s source, w io.Writer) error {
	path, err := resource.ObjectPath(pods.Mapping(), o.namespace, s.pod.Name, "log")
	if err != nil {
		return err
	}
	r := o.client.REST.Get().AbsPath(path...)
	for k, v := range o.query(s.container) {
		r.Param(k, v[0])
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	head := ""
	if o.prefix {
		head = printers.Escape(fmt.Sprintf("[pod/%s/%s] ", s.pod.Name, s.container)) // the log itself is shown as it is
	}
	err = lines(w, body, head)
	if ctx.Err() != nil {
		return cli.Cause(ctx)
	}
	return err
}

func (o *Options) query(container string) url.Values {
	q := url.Values{"container": {container}}
	set := func(name string, on bool, value string) {
		if on {
			q.Set(name, value)
		}
	}
	set("follow", o.follow, "true")
	set("previous", o.previous, "true")
	set("timestamps", o.timestamps, "true")
	set("insecureSkipTLSVerifyBackend", o.insecure, "true")
	set("tailLines", o.tail >= 0, strconv.FormatInt(o.tail, 10))
	set("limitBytes", o.limit > 0, strconv.FormatInt(o.limit, 10))
	set("sinceSeconds", o.since > 0, strconv.FormatInt(int64((o.since+time.Second-1)/time.Second), 10))
	set("sinceTime", o.sinceTime != "", o.sinceTime)
	return q
}
