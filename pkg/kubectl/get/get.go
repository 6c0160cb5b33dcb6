// Package get shows objects: as the server's tables, in any output format, once or as they change.
package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

const long = `Display one or many resources.

 Prints a table of the most important information about the specified resources. You can filter the list using a label selector and the --selector flag. If the desired resource type is namespaced you will only see results in the current namespace if you don't specify any namespace.

 By specifying the output as 'template' and providing a Go template as the value of the --template flag, you can filter the attributes of the fetched resources.

Use "kubectl api-resources" for a complete list of supported resources.`

const examples = `
# List all pods in ps output format
kubectl get pods

# List all pods in ps output format with more information (such as node name)
kubectl get pods -o wide

# List a single deployment in JSON output format
kubectl get -o json deployment web

# Return only the phase value of the specified pod
kubectl get -o template pod/web-pod-13je7 --template={{.status.phase}}

# List resource information in custom columns
kubectl get pod test-pod -o custom-columns=CONTAINER:.spec.containers[0].name,IMAGE:.spec.containers[0].image

# List all replication controllers and services together in ps output format
kubectl get rc,services`

// Options is one run of get.
type Options struct {
	cli.IOStreams

	print   *printers.Flags
	request resource.Request
	table   printers.TableOptions

	sortBy, raw                             string
	watch, watchOnly, watchEvents, showKind bool
	serverPrint, ignoreNotFound             bool

	client  *resource.Client
	printer printers.Printer // nil: tables
	now     func() time.Time
}

// NewCommand returns "kubectl get".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams, print: printers.NewFlags(), now: time.Now}
	o.print.Extra = []string{"custom-columns", "custom-columns-file", "wide"}
	cmd := &cobra.Command{
		Use:     "get [(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|jsonpath-as-json|jsonpath-file|custom-columns|custom-columns-file|wide] (TYPE[.VERSION][.GROUP] [NAME | -l label] | TYPE[.VERSION][.GROUP]/NAME ...) [flags]",
		Short:   "Display one or many resources",
		Long:    long,
		Example: examples,
		RunE:    cli.RunE(f, o),
	}
	set := cmd.Flags()
	o.print.AddOutput(set, "Output format. One of: (json, yaml, kyaml, name, go-template, go-template-file, template, templatefile, jsonpath, jsonpath-as-json, jsonpath-file, custom-columns, custom-columns-file, wide). See custom columns [https://kubernetes.io/docs/reference/kubectl/#custom-columns], golang template [http://golang.org/pkg/text/template/#pkg-overview] and jsonpath template [https://kubernetes.io/docs/reference/kubectl/jsonpath/].")
	o.print.AddTemplateFlags(set)
	o.request.Files.AddFlags(set, "Filename, directory, or URL to files identifying the resource to get from a server.")
	set.StringVarP(&o.request.LabelSelector, "selector", "l", "",
		"Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
	set.StringVar(&o.request.FieldSelector, "field-selector", "",
		"Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	set.BoolVarP(&o.request.AllNamespaces, "all-namespaces", "A", false,
		"If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	set.Int64Var(&o.request.Limit, "chunk-size", 500,
		"Return large lists in chunks rather than all at once. Pass 0 to disable.")
	set.StringVar(&o.request.Subresource, "subresource", "",
		"If specified, gets the subresource of the requested object.")
	set.BoolVar(&o.table.NoHeaders, "no-headers", false,
		"When using the default or custom-column output format, don't print headers (default print headers).")
	set.BoolVar(&o.table.ShowLabels, "show-labels", false,
		"When printing, show all labels as the last column (default hide labels column)")
	set.StringSliceVarP(&o.table.LabelColumns, "label-columns", "L", nil,
		"Accepts a comma separated list of labels that are going to be presented as columns. Names are case-sensitive. You can also use multiple flag options like -L label1 -L label2...")
	set.BoolVar(&o.showKind, "show-kind", false, "If present, list the resource type for the requested object(s).")
	set.StringVar(&o.sortBy, "sort-by", "",
		"If non-empty, sort list types using this field specification.  The field specification is expressed as a JSONPath expression (e.g. '{.metadata.name}'). The field in the API resource specified by this JSONPath expression must be an integer or a string.")
	set.StringVar(&o.raw, "raw", "",
		"Raw URI to request from the server.  Uses the transport specified by the kubeconfig file.")
	set.BoolVarP(&o.watch, "watch", "w", false, "After listing/getting the requested object, watch for changes.")
	set.BoolVar(&o.watchOnly, "watch-only", false,
		"Watch for changes to the requested object(s), without listing/getting first.")
	set.BoolVar(&o.watchEvents, "output-watch-events", false,
		"Output watch event objects when --watch or --watch-only is used. Existing objects are output as initial ADDED events.")
	set.BoolVar(&o.serverPrint, "server-print", true,
		"If true, have the server return the appropriate table output. Supports extension APIs and CRDs.")
	set.BoolVar(&o.ignoreNotFound, "ignore-not-found", false,
		"If set to true, suppresses NotFound error for specific objects that do not exist. Using this flag with commands that query for collections of resources has no effect when no resources are found.")
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if o.raw != "" {
		if len(args) > 0 {
			return errors.New("arguments may not be passed when --raw is specified")
		}
		o.client, err = f.Resources()
		return err
	}
	if len(args) == 0 && o.request.Files.Empty() {
		fmt.Fprintf(o.ErrOut, "You must specify the type of resource to get. Use \"kubectl api-resources\" for a complete list of supported resources.\n\n")
		return cli.UsageErrorf(cmd,
			"Required resource not specified.\nUse \"kubectl explain <resource>\" for a detailed description of that resource (e.g. kubectl explain pods).")
	}
	if o.request.Namespace, o.request.ExplicitNamespace, err = f.Namespace(); err != nil {
		return err
	}
	if o.request.AllNamespaces {
		o.request.ExplicitNamespace = false
	}
	o.request.Args, o.request.Latest, o.request.Lists, o.request.Collections = args, true, true, true
	o.request.IgnoreNotFound = o.ignoreNotFound
	if o.sortBy != "" {
		o.request.Limit = 0 // pages sorted one by one would not be sorted
	}
	if o.printer, err = o.newPrinter(); err != nil {
		return err
	}
	o.client, err = f.Resources()
	return err
}

// newPrinter returns the printer of -o, nil for tables.
func (o *Options) newPrinter() (printers.Printer, error) {
	format, arg, _ := strings.Cut(o.print.Output, "=")
	switch format {
	case "wide":
		o.table.Wide = true
		return nil, nil
	case "":
		if o.print.Template == "" {
			return nil, nil
		}
	case "custom-columns":
		if arg == "" {
			arg = o.print.Template
		}
		return printers.NewColumns(arg, o.table.NoHeaders)
	case "custom-columns-file":
		if arg == "" {
			arg = o.print.Template
		}
		return printers.NewColumnsFile(arg, o.table.NoHeaders)
	}
	return o.print.Printer("")
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	switch {
	case o.raw != "" && (o.watch || o.watchOnly || o.request.LabelSelector != ""):
		return errors.New("--raw may not be specified with other flags that filter the server request or alter the output")
	case o.raw != "" && o.print.Output != "":
		return errors.New("--raw and --output are mutually exclusive")
	case o.raw != "":
		if _, err := url.ParseRequestURI(o.raw); err != nil {
			return fmt.Errorf("--raw must be a valid URL path: %w", err)
		}
	case o.table.ShowLabels && o.printer != nil:
		return fmt.Errorf("--show-labels option cannot be used with %s printer", o.print.Output)
	case len(o.table.LabelColumns) > 0 && strings.HasPrefix(o.print.Output, "custom-columns"):
		return fmt.Errorf("--label-columns option cannot be used with %s printer", o.print.Output)
	case o.request.Subresource != "" && !o.named() && o.request.Files.Empty():
		return errors.New("subresource cannot be used when bulk resources are specified")
	case o.watchEvents && !o.watch && !o.watchOnly:
		return errors.New("--output-watch-events option can only be used with --watch or --watch-only")
	}
	return nil
}

const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// Run implements cli.Options.
func (o *Options) Run(ctx context.Context) error {
	switch {
	case o.raw != "":
		return o.runRaw(ctx)
	case o.watch || o.watchOnly:
		return o.runWatch(ctx)
	}
	o.accept()
	infos, err := o.client.Resolve(ctx, o.request)
	if err != nil && len(infos) == 0 &&
		!(o.printer != nil && o.several() && (apierrors.IsNotFound(first(err)) || meta.IsNoMatchError(first(err)))) {
		return err
	}
	if o.printer != nil {
		if err != nil && o.client.OneSource(ctx, o.request.Files) {
			return err
		}
		if printErr := o.printObjects(infos, err != nil); printErr != nil {
			return errors.Join(printErr, err)
		}
		return err // as it is: each of several errors has a line of its own
	}
	printed, tableErr := o.printTables(infos)
	switch {
	case tableErr != nil:
		return tableErr
	case err != nil:
		return err
	case printed == 0 && !o.ignoreNotFound:
		o.nothing(infos)
	}
	return nil
}

// first returns the first of an aggregate's errors, or err itself.
func first(err error) error {
	var all utilerrors.Aggregate
	if errors.As(err, &all) && len(all.Errors()) > 0 {
		return all.Errors()[0]
	}
	return err
}

// accept requests tables from the server if tables will be shown. To sort by any field, each row needs its whole object
// (includeObject); otherwise the server sends only metadata.
func (o *Options) accept() {
	if o.printer != nil || !o.serverPrint {
		return
	}
	o.request.Accept = acceptTable
	if o.sortBy != "" {
		o.request.Query = url.Values{"includeObject": {"Object"}}
	}
}

// nothing prints that no resources were found, on standard error: standard output stays empty for scripts.
func (o *Options) nothing(infos []*resource.Info) {
	namespaced := !o.request.AllNamespaces
	for _, i := range infos { // empty if no object of the files was selected
		namespaced = namespaced && i.Namespaced()
	}
	if namespaced {
		fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.request.Namespace)
		return
	}
	fmt.Fprintln(o.ErrOut, "No resources found")
}

// runRaw copies the answer of the path as it is, without escaping control characters: the user asked for
// the server's bytes.
func (o *Options) runRaw(ctx context.Context) error {
	u, err := url.ParseRequestURI(o.raw)
	if err != nil {
		return err
	}
	r := o.client.REST.Verb(http.MethodGet).RequestURI(u.RequestURI())
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(o.Raw().Out, body)
	return err
}
