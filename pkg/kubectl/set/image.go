package set

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// image is "set image".
type image struct {
	setter
	// pairs are container=image in the order given.
	pairs [][2]string
}

func newImage(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &image{setter: newSetter(streams, "image updated", "failed to patch image update to pod template:")}
	cmd := &cobra.Command{
		Use:     "image (-f FILENAME | TYPE NAME) CONTAINER_NAME_1=CONTAINER_IMAGE_1 ... CONTAINER_NAME_N=CONTAINER_IMAGE_N",
		Short:   "Update the image of a pod template",
		Long:    "Update existing container image(s) of resources.",
		Example: "  # Set a deployment's nginx container image to 'nginx:1.9.1', and its busybox container image to 'busybox'\n  kubectl set image deployment/nginx busybox=busybox nginx=nginx:1.9.1",
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd.Flags())
	o.target.AddSelector(cmd.Flags())
	o.AddRecord(cmd)
	return cmd
}

// Complete splits the arguments into objects and images, and gets the client.
func (o *image) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	objects, pairs, err := write.SplitPairs(args, "image")
	if err != nil {
		return err
	}
	o.args = objects
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("invalid image spec: %s", p)
		}
		o.pairs = append(o.pairs, [2]string{name, value})
	}
	return o.CompleteWith(f)
}

// Validate requires objects to change.
func (o *image) Validate() error {
	if len(o.args) == 0 && o.target.Files.Empty() {
		return resource.ErrNoResource
	}
	return o.setter.Validate()
}

// Run changes the images. It reports missing objects before a missing image, as upstream does: "set image po a b" may
// have meant the pod b.
func (o *image) Run(ctx context.Context) error {
	if len(o.pairs) == 0 {
		if _, err := o.find(ctx); err != nil {
			return err
		}
		return errors.New("at least one image update is required")
	}
	return o.update(ctx, func(i *resource.Info, u *unstructured.Unstructured) error {
		spec, err := podSpec(i, u)
		if err != nil {
			return err
		}
		return setImages(spec, o.pairs)
	})
}

// setImages changes the containers that it finds; its error names the others.
func setImages(spec map[string]any, pairs [][2]string) error {
	all := append(containers(spec, "containers"), containers(spec, "initContainers")...)
	var errs []error
	for _, p := range pairs {
		found := matching(all, p[0])
		if len(found) == 0 {
			// "error: " is said of each of several objects.
			errs = append(errs, fmt.Errorf("error: unable to find container named %q", p[0]))
		}
		for _, c := range found {
			c["image"] = p[1]
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}
