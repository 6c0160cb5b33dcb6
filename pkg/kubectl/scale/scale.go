// Package scale is "kubectl scale": it sets the size of whatever has a scale subresource.
package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const example = `  # Scale a replica set named 'foo' to 3
  kubectl scale --replicas=3 rs/foo

  # If the deployment named mysql's current size is 2, scale mysql to 3
  kubectl scale --current-replicas=2 --replicas=3 deployment/mysql`

// conflicts is how often a PUT with preconditions is tried again when another one came between.
const conflicts = 10

// Options is one run of "kubectl scale".
type Options struct {
	write.Base
	target            write.Target
	args              []string
	replicas, current int64
	version           string
	timeout           time.Duration
}

// NewCommand makes the command.
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{Base: write.Base{Flags: write.NewFlags(""), IOStreams: streams}}
	cmd := &cobra.Command{
		Use:     "scale [--resource-version=version] [--current-replicas=count] --replicas=COUNT (-f FILENAME | TYPE NAME)",
		Short:   "Set a new size for a deployment, replica set, or replication controller",
		Long:    "Set a new size for a deployment, replica set, replication controller, or stateful set.",
		Example: example,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.Flags.AddFlags(set)
	o.AddRecord(cmd)
	o.target.AddFlags(set, "Filename, directory, or URL to files identifying the resource to set a new size")
	set.Int64Var(&o.replicas, "replicas", 0, "The new desired number of replicas. Required.")
	_ = cmd.MarkFlagRequired("replicas") // the flag was added above
	set.Int64Var(&o.current, "current-replicas", -1,
		"Precondition for current size. Requires that the current size of the resource match this value in order to scale. -1 (default) for no condition.")
	set.StringVar(&o.version, "resource-version", "",
		"Precondition for resource version. Requires that the current resource version match this value in order to scale.")
	set.DurationVar(&o.timeout, "timeout", 0,
		"The length of time to wait before giving up on a scale operation, zero means don't wait. Any other values should contain a corresponding time unit (e.g. 1s, 2m, 3h).")
	return cmd
}

// Complete gets the client.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate checks the size.
func (o *Options) Validate() error {
	if o.replicas < 0 {
		return errors.New("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	}
	if o.current < -1 {
		return errors.New("The --current-replicas must specify an integer of -1 or greater")
	}
	_, err := o.Printer("scaled")
	return err
}

// Run scales what it finds.
func (o *Options) Run(ctx context.Context) error {
	q := o.target.Request(&o.Base, o.args)
	q.StopAtFirst = true
	infos, err := o.Client.Resolve(ctx, q)
	if len(infos) > 1 && o.version != "" {
		return errors.New("cannot use --resource-version with multiple resources")
	}
	p, perr := o.Printer("scaled")
	if perr != nil {
		return perr
	}
	if err == nil && len(infos) == 0 {
		return errors.New("no objects passed to scale")
	}
	return resource.Each(infos, err, func(i *resource.Info) error {
		if err := o.scale(ctx, i); err != nil {
			return err
		}
		if err := o.RecordPatch(ctx, i); err != nil {
			return err
		}
		// What is shown is the object as it was found, in its new size: its own answer comes later than that of /scale.
		if err := unstructured.SetNestedField(i.Object.Object, o.replicas, "spec", "replicas"); err != nil {
			return err
		}
		return p.Print(i.Object, o.Out)
	})
}

func (o *Options) scale(ctx context.Context, i *resource.Info) error {
	if o.DryRun == write.DryRunClient {
		return nil
	}
	var err error
	if o.version == "" && o.current < 0 {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, o.replicas)
		_, err = o.Client.Patch(ctx, i.Mapping, i.Namespace, i.Name, types.MergePatchType, []byte(patch),
			o.PatchOptions(), "scale")
	} else {
		err = o.update(ctx, i)
	}
	if err != nil || o.timeout == 0 || o.DryRun != write.DryRunNone {
		return err
	}
	return o.await(ctx, i)
}

// update scales by GET and PUT, so that the preconditions are judged on what is replaced.
func (o *Options) update(ctx context.Context, i *resource.Info) error {
	for try := 0; ; try++ {
		s, err := o.Client.Get(ctx, i.Mapping, i.Namespace, i.Name, "scale")
		if err != nil {
			return err
		}
		if err := o.check(s); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(s.Object, o.replicas, "spec", "replicas"); err != nil {
			return err
		}
		_, err = o.Client.Update(ctx, i.Mapping, i.Namespace, i.Name, s, o.UpdateOptions(), "scale")
		if !apierrors.IsConflict(err) || o.version != "" || try == conflicts {
			return err
		}
	}
}

func (o *Options) check(scale *unstructured.Unstructured) error {
	n, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if o.current >= 0 && n != o.current {
		return fmt.Errorf("Expected replicas to be %d, was %d", o.current, n)
	}
	if v := scale.GetResourceVersion(); o.version != "" && v != o.version {
		return fmt.Errorf("Expected resource version to be %s, was %s", o.version, v)
	}
	return nil
}

// await waits until the controller has made as many replicas as asked.
func (o *Options) await(ctx context.Context, i *resource.Info) error {
	return write.Await(ctx, o.Client, i.Mapping, i.Namespace, i.Name, o.timeout,
		func(u *unstructured.Unstructured) (bool, error) {
			if u == nil {
				return false, fmt.Errorf("%s was deleted", i.ResourceName())
			}
			seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
			n, _, _ := unstructured.NestedInt64(u.Object, "status", "replicas")
			return seen >= u.GetGeneration() && n == o.replicas, nil
		})
}
