package set

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	kresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// resources is "set resources".
type resources struct {
	setter
	container, limits, requests string
	values                      map[string]map[string]any
}

func newResources(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &resources{setter: newSetter(streams, "resource requirements updated",
		"failed to patch resources update to pod template")}
	cmd := &cobra.Command{
		Use:     "resources (-f FILENAME | TYPE NAME)  ([--limits=LIMITS & --requests=REQUESTS]",
		Short:   "Update resource requests/limits on objects with pod templates",
		Long:    "Specify compute resource requirements (CPU, memory) for any resource that defines a pod template.",
		Example: "  # Set a deployments nginx container cpu limits to \"200m\" and memory to \"512Mi\"\n  kubectl set resources deployment nginx -c=nginx --limits=cpu=200m,memory=512Mi",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.addFlags(set)
	o.target.AddSelector(set)
	o.AddRecord(cmd)
	set.StringVarP(&o.container, "containers", "c", "*",
		"The names of containers in the selected pod templates to change, all containers are selected by default - may use wildcards")
	set.StringVar(&o.limits, "limits", "",
		"The resource requirement requests for this container.  For example, 'cpu=100m,memory=256Mi'.")
	set.StringVar(&o.requests, "requests", "",
		"The resource requirement requests for this container.  For example, 'cpu=100m,memory=256Mi'.")
	return cmd
}

// Complete reads the quantities and gets the client.
func (o *resources) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	o.args = args
	return o.CompleteWith(f)
}

// Validate requires and reads quantities.
func (o *resources) Validate() error {
	if o.limits == "" && o.requests == "" {
		return errors.New("you must specify an update to requests or limits (in the form of --requests/--limits)")
	}
	o.values = map[string]map[string]any{}
	for field, text := range map[string]string{"limits": o.limits, "requests": o.requests} {
		if text == "" {
			continue
		}
		list, err := quantities(text)
		if err != nil {
			return err
		}
		o.values[field] = list
	}
	return o.setter.Validate()
}

// quantities reads "cpu=1,memory=2Gi".
func quantities(text string) (map[string]any, error) {
	out := map[string]any{}
	for _, pair := range strings.Split(text, ",") {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || strings.Contains(v, "=") {
			return nil, fmt.Errorf("invalid argument syntax %v, expected <resource>=<value>", pair)
		}
		q, err := kresource.ParseQuantity(v)
		if err != nil {
			return nil, err
		}
		out[k] = q.String()
	}
	return out, nil
}

// Run changes the requests and limits that the user names and keeps the others.
func (o *resources) Run(ctx context.Context) error {
	return o.update(ctx, func(i *resource.Info, u *unstructured.Unstructured) error {
		spec, err := podSpec(i, u)
		if err != nil {
			return err
		}
		chosen := matching(append(containers(spec, "containers"), containers(spec, "initContainers")...), o.container)
		if len(chosen) == 0 {
			return fmt.Errorf("unable to find container named %s", o.container)
		}
		for _, c := range chosen {
			for field, list := range o.values {
				for k, v := range list {
					if err := unstructured.SetNestedField(c, v, "resources", field, k); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// serviceAccount is "set serviceaccount".
type serviceAccount struct {
	setter
	name string
}

func newServiceAccount(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &serviceAccount{setter: newSetter(streams, "serviceaccount updated", "failed to patch ServiceAccountName")}
	o.always = true
	cmd := &cobra.Command{
		Use:     "serviceaccount (-f FILENAME | TYPE NAME) SERVICE_ACCOUNT",
		Aliases: []string{"sa"},
		Short:   "Update the service account of a resource",
		Long:    "Update the service account of pod template resources.",
		Example: "  # Set deployment nginx-deployment's service account to serviceaccount1\n  kubectl set serviceaccount deployment nginx-deployment serviceaccount1",
		RunE:    cli.RunE(f, o),
	}
	o.addFlags(cmd.Flags())
	o.AddRecord(cmd)
	return cmd
}

// Complete takes the account's name, the last argument.
func (o *serviceAccount) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("serviceaccount is required")
	}
	o.args, o.name = args[:len(args)-1], args[len(args)-1]
	return o.CompleteWith(f)
}

// Run changes the account.
func (o *serviceAccount) Run(ctx context.Context) error {
	return o.update(ctx, func(i *resource.Info, u *unstructured.Unstructured) error {
		spec, err := podSpec(i, u)
		if err != nil {
			return err
		}
		spec["serviceAccountName"] = o.name
		if _, ok := spec["serviceAccount"]; ok {
			spec["serviceAccount"] = o.name // the old name of the same field
		}
		return nil
	})
}

// selector is "set selector".
type selector struct {
	setter
	labels map[string]any
	// version, if any, is the one that the object must have.
	version string
}

func newSelector(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &selector{setter: newSetter(streams, "selector updated", "")}
	o.any = true
	cmd := &cobra.Command{
		Use:     "selector (-f FILENAME | TYPE NAME) EXPRESSIONS [--resource-version=version]",
		Short:   "Set the selector on a resource",
		Long:    "Set the selector on a resource. Note that the new selector will overwrite the old selector if the resource had one prior to the invocation of 'set selector'.",
		Example: "  # Set the labels and selector before creating a deployment/service pair\n  kubectl create service clusterip my-svc --clusterip=\"None\" -o yaml --dry-run=client | kubectl set selector --local -f - 'environment=qa' -o yaml | kubectl create -f -",
		RunE:    cli.RunE(f, o),
	}
	o.always = true
	o.target.Files.Recursive = true
	o.addFlags(cmd.Flags())
	o.AddRecord(cmd)
	cmd.Flags().StringVar(&o.version, "resource-version", "",
		"If non-empty, the selectors update will only succeed if this is the current resource-version for the object. Only valid when specifying a single resource.")
	return cmd
}

// Complete takes the selector, the last argument.
func (o *selector) Complete(f *cli.Factory, _ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return resource.ErrNoResource
	}
	o.args = args[:len(args)-1]
	s, err := metav1.ParseToLabelSelector(args[len(args)-1])
	if err != nil {
		return err
	}
	if len(o.args) == 1 && !strings.Contains(o.args[0], "/") && o.target.Files.Empty() {
		return errors.New("resource(s) were provided, but no name was specified")
	}
	if len(s.MatchExpressions) > 0 {
		return fmt.Errorf("match expression %v not supported on this object", s.MatchExpressions)
	}
	o.labels = map[string]any{}
	for k, v := range s.MatchLabels {
		o.labels[k] = v
	}
	return o.CompleteWith(f)
}

// Run changes the selector of services.
func (o *selector) Run(ctx context.Context) error {
	return o.update(ctx, func(_ *resource.Info, u *unstructured.Unstructured) error {
		if u.GetKind() != "Service" {
			return errors.New("setting a selector is only supported for Services")
		}
		if o.version != "" {
			u.SetResourceVersion(o.version)
		}
		return unstructured.SetNestedMap(u.Object, o.labels, "spec", "selector")
	})
}
