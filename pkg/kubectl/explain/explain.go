// Package explain documents the fields of resources, from the schemas the server publishes at /openapi/v3, or
// /openapi/v2.
package explain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/resource"
)

// Options are the flags and arguments of one run.
type Options struct {
	cli.IOStreams
	client *resource.Client

	arg, apiVersion, output string
	depth                   depth
}

// depth says which fields of fields a page lists.
type depth struct {
	recursive bool
	most      int // levels of fields, if recursive; 0: all
}

// below reports whether the fields of fields of a level are listed. The first level is 1.
func (d depth) below(level int) bool { return d.recursive && (d.most == 0 || level < d.most) }

// NewCommand returns "kubectl explain".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:     "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2]",
		Short:   "Get documentation for a resource",
		Long:    "Describe fields and structure of various resources. A field is named by its path:\n\n  <type>.<fieldName>[.<fieldName>]\n\n The server tells what its fields are, in OpenAPI format.\n\nUse \"kubectl api-resources\" for a complete list of supported resources.",
		Example: "# What a pod is made of\nkubectl explain pods\n\n# All fields, at every depth\nkubectl explain pods --recursive\n\n# One version of a resource\nkubectl explain deployments --api-version=apps/v1\n\n# One field\nkubectl explain pods.spec.containers",
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	set.BoolVarP(&o.depth.recursive, "recursive", "R", false,
		"Print the fields of fields. Use --max-depth to cap the recursion depth.")
	set.IntVar(&o.depth.most, "max-depth", 0,
		"Maximum recursion depth when printing nested fields with --recursive. 0 means no limit. Requires --recursive when greater than 0.")
	set.StringVar(&o.apiVersion, "api-version", "",
		"Get different explanations for particular API version (API group/version)")
	set.StringVarP(&o.output, "output", "o", "plaintext",
		"Format in which to render the schema (plaintext, plaintext-openapiv2)")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, _ *cobra.Command, args []string) (err error) {
	switch len(args) {
	case 0:
		return errors.New("You must specify the type of resource to explain. Use \"kubectl api-resources\" for a complete list of supported resources.")
	case 1:
		if o.arg = args[0]; o.arg == "" {
			return errors.New("a resource must be present, got: /, Resource=")
		}
	default:
		return errors.New("We accept only this format: explain RESOURCE")
	}
	o.client, err = f.Resources()
	return err
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	if o.output != "plaintext" && o.output != plaintextV2 {
		return fmt.Errorf("unrecognized format: %s", o.output)
	}
	switch {
	case o.depth.most < 0:
		return errors.New("--max-depth must be non-negative")
	case o.depth.most > 0 && !o.depth.recursive:
		return errors.New("--max-depth requires --recursive")
	}
	return nil
}

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	gvr, path, err := o.target()
	if err != nil {
		return err
	}
	if o.output == plaintextV2 {
		return o.explainV2(ctx, gvr, path)
	}
	doc, err := o.document(ctx, gvr)
	if err != nil {
		return err
	}
	gvk, ok := doc.kind(gvr)
	if !ok {
		return fmt.Errorf("GVR (%s) not found in OpenAPI schema", gvr)
	}
	root := doc.schemaOf(gvk)
	if root == nil {
		return fmt.Errorf("GVK (%s) not found in OpenAPI schema", gvk)
	}
	p := &page{doc: doc, out: o.Out, depth: o.depth}
	return p.print(gvk, root, path)
}

// target takes the argument apart: the resource and the path of the field.
func (o *Options) target() (schema.GroupVersionResource, []string, error) {
	name, path := o.split()
	if name == "" {
		path = []string{""}
	}
	for _, part := range path {
		if part == "" || strings.ContainsAny(part, "[]{}*") {
			return schema.GroupVersionResource{}, nil,
				errors.New("invalid jsonpath syntax, first node must be field node")
		}
	}
	gvr, err := o.client.Mapper.ResourceFor(schema.ParseGroupResource(name).WithVersion(""))
	var none *meta.NoResourceMatchError
	if errors.As(err, &none) {
		return gvr, nil, typeError(none.PartialResource.Resource)
	}
	if err != nil {
		return gvr, nil, err
	}
	if o.apiVersion != "" {
		gv, err := schema.ParseGroupVersion(o.apiVersion)
		if err != nil {
			return gvr, nil, err
		}
		gvr = gv.WithResource(gvr.Resource)
	}
	return gvr, path, nil
}

// split is the resource, which may be followed by its group, and the path of the field.
func (o *Options) split() (string, []string) {
	name, rest, _ := strings.Cut(strings.TrimSuffix(o.arg, "."), ".")
	if rest == "" {
		return name, nil
	}
	if all, err := o.client.Mapper.ResourcesFor(schema.GroupVersionResource{Resource: name}); err == nil {
		for _, gvr := range all {
			if after, ok := strings.CutPrefix(rest+".", gvr.Group+"."); ok && gvr.Group != "" && name == gvr.Resource {
				return name + "." + gvr.Group, fields(strings.TrimSuffix(after, "."))
			}
		}
	}
	return name, fields(rest)
}

// fields takes a path apart. It may begin with a dot, as a JSONPath does.
func fields(path string) []string {
	path = strings.TrimPrefix(path, ".")
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// document reads the schemas of gvr's group and version.
func (o *Options) document(ctx context.Context, gvr schema.GroupVersionResource) (*document, error) {
	path := "/openapi/v3/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = "/openapi/v3/api/" + gvr.Version
	}
	data, err := o.client.Do(ctx, http.MethodGet, []string{path}, nil, nil, "Accept", resource.JSON)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("couldn't find resource for %q", gvr)
	}
	if err != nil {
		return nil, err
	}
	return parse(data)
}

// typeError is a TYPE that the server does not have.
type typeError string

func (e typeError) Error() string {
	return fmt.Sprintf("the server doesn't have a resource type %q", string(e))
}

// Plain tells that the message is shown without a prefix.
func (typeError) Plain() bool { return true }
