package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Request selects the objects of a command: those of files, or those of its arguments (TYPE, TYPE NAME…, TYPE/NAME…)
// and selectors. A type without names is an error, unless All, Lists or a selector asks for a list.
type Request struct {
	Args  []string
	Files Files

	// Namespace is where namespaced objects are; ExplicitNamespace is set if the user named it, so that a file must not
	// say another. AllNamespaces asks for all.
	Namespace         string
	ExplicitNamespace bool
	AllNamespaces     bool

	LabelSelector, FieldSelector string
	// All asks for all objects of a TYPE, as delete --all does; names are then refused. Lists allows a TYPE without
	// names or selector, as get does.
	All, Lists bool
	// Limit is the page size of lists; 0 asks for everything at once.
	Limit int64
	// Latest reads the objects of files from the server; otherwise they are as in the file.
	Latest bool
	// StopAtFirst looks at no object of files after one that is not found.
	StopAtFirst bool
	// NamesOnly does not read named objects from the server.
	NamesOnly bool
	// Collections keeps each page of a list as one Info instead of one for each item, and answers as sent (Info.Raw).
	Collections bool
	// Accept is the Accept header of reads, "application/json" by default.
	Accept string
	// Query is sent with every read.
	Query url.Values
	// Subresource is read instead of the object itself.
	Subresource string
	// Local leaves the objects of files in the namespaces they name, or in none, and does not ask the server for their
	// resources: a Mapping is guessed of the kind then.
	Local bool
	// Single allows one TYPE only.
	Single bool
	// IgnoreNotFound leaves out named objects that do not exist.
	IgnoreNotFound bool
}

// ErrNoResource is returned for a request with neither files nor arguments.
var ErrNoResource = errors.New(`You must provide one or more resources by argument or filename.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'
   '<resource> <name>'
   '<resource>'`)

// Resolve finds the objects of q. It returns the objects that it found together with the errors about the others (an
// aggregate, if there are several), so that a command can show what exists before it fails. Objects of arguments come
// in the order of the arguments; those of files in the order of the files.
func (c *Client) Resolve(ctx context.Context, q Request) ([]*Info, error) {
	if q.Accept == "" {
		q.Accept = JSON
	}
	switch {
	case !q.Files.Empty() && len(q.Args) > 0:
		return nil, errors.New("when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well")
	case !q.Files.Empty():
		return c.resolveFiles(ctx, q)
	case len(q.Args) == 0:
		return nil, ErrNoResource
	}
	tuples, err := hasTuples(q.Args)
	if err != nil {
		return nil, err
	}
	if tuples {
		return c.resolveTuples(ctx, q)
	}
	mappings, err := c.types(q.Args[0], len(q.Args) > 1)
	if err != nil {
		return nil, err
	}
	if q.Single && len(mappings) > 1 {
		return nil, errors.New("you may only specify a single resource type")
	}
	if len(q.Args) > 1 {
		return c.resolveNames(ctx, q, mappings, q.Args[1:])
	}
	return c.resolveLists(ctx, q, mappings)
}

// Each calls do for each of infos, also after an error. It returns the errors, and after them resolve, the error about
// objects that were not found: a single error as it is, several as an aggregate.
func Each(infos []*Info, resolve error, do func(*Info) error) error {
	var errs []error
	for _, i := range infos {
		if err := do(i); err != nil {
			errs = append(errs, err)
		}
	}
	if resolve != nil {
		errs = append(errs, resolve)
	}
	return aggregate(errs)
}

// aggregate is nil, the one error, or all of them.
func aggregate(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return utilerrors.NewAggregate(errs)
}

// hasTuples reports whether the arguments are TYPE/NAME pairs; they must be all or none.
func hasTuples(args []string) (bool, error) {
	n := 0
	for _, a := range args {
		if strings.Contains(a, "/") {
			n++
		}
	}
	if n > 0 && n < len(args) {
		return false, fmt.Errorf(
			"there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. '%s get resource/<resource_name>' instead of '%s get resource resource/<resource_name>'", "kubectl", "kubectl")
	}
	return n > 0, nil
}

var errTuple = errors.New("arguments in resource/name form must have a single resource and name")

// SplitTuple takes TYPE/NAME apart.
func SplitTuple(arg string) (kind, name string, err error) {
	parts := strings.Split(arg, "/")
	if len(parts) != 2 {
		return "", "", errors.New("arguments in resource/name form may not have more than one slash")
	}
	if parts[0] == "" || parts[1] == "" || strings.Contains(parts[0], ",") {
		return "", "", errTuple
	}
	return parts[0], parts[1], nil
}

// resolveTuples finds TYPE/NAME arguments. A malformed argument ends it at once: the user meant something else.
func (c *Client) resolveTuples(ctx context.Context, q Request) ([]*Info, error) {
	if q.LabelSelector != "" || q.FieldSelector != "" {
		return nil, errors.New("selectors and the all flag cannot be used when passing resource/name arguments")
	}
	if q.All {
		return nil, errors.New("setting 'all' parameter but found a non empty selector. ")
	}
	var out []*Info
	var errs []error
	for _, arg := range q.Args {
		kind, name, err := SplitTuple(arg)
		if err != nil {
			return nil, err
		}
		m, err := c.Mapping(kind)
		if err != nil {
			return nil, err
		}
		out, errs = c.named(ctx, q, m, name, out, errs)
	}
	return out, aggregate(errs)
}

// resolveNames finds every name in every type of TYPE[,TYPE…] NAME….
func (c *Client) resolveNames(ctx context.Context, q Request, mappings []*meta.RESTMapping, names []string) ([]*Info,
	error) {
	switch {
	case q.LabelSelector != "" || q.FieldSelector != "":
		return nil, errors.New("name cannot be provided when a selector is specified")
	case q.All:
		return nil, errors.New("name cannot be provided when a selector is specified")
	case len(mappings) > 1 && slices.Contains(names, ""):
		return nil, errTuple // as "pods/" and "services/" would be
	}
	var out []*Info
	var errs []error
	for _, m := range mappings {
		if q.AllNamespaces && m.Scope.Name() == meta.RESTScopeNameNamespace {
			return nil, errors.New("a resource cannot be retrieved by name across all namespaces")
		}
		for _, name := range names {
			out, errs = c.named(ctx, q, m, name, out, errs)
		}
	}
	return out, aggregate(errs)
}

// named appends the object called name to out, or the reason why there is none to errs. The name is checked before it
// becomes part of a path: "../x" would name another resource.
func (c *Client) named(ctx context.Context, q Request, m *meta.RESTMapping, name string, out []*Info,
	errs []error) ([]*Info, []error) {
	info := &Info{Mapping: m, Name: name, client: c}
	if info.Namespaced() {
		if q.AllNamespaces {
			return out, append(errs, errors.New("a resource cannot be retrieved by name across all namespaces"))
		}
		info.Namespace = q.Namespace
	}
	if err := CheckName(name); err != nil {
		return out, append(errs, err)
	}
	if q.NamesOnly {
		return append(out, info), errs
	}
	if err := c.read(ctx, q, info); err != nil {
		if q.IgnoreNotFound && apierrors.IsNotFound(err) {
			return out, errs
		}
		return out, append(errs, err)
	}
	return append(out, info), errs
}

// read reads the object of info from the server.
func (c *Client) read(ctx context.Context, q Request, info *Info) error {
	path, err := ObjectPath(info.Mapping, info.Namespace, info.Name, q.Subresource)
	if err != nil {
		return err
	}
	data, err := c.Do(ctx, http.MethodGet, path, q.Query, nil, "Accept", q.Accept)
	if err != nil {
		return c.missing(ctx, info.Mapping, info.Namespace, err)
	}
	if info.Raw, info.Object = data, nil; q.Collections {
		return nil
	}
	info.Raw = nil
	info.Object, err = decode(data)
	return err
}

// resolveLists lists the types. A type that fails does not hide the others.
func (c *Client) resolveLists(ctx context.Context, q Request, mappings []*meta.RESTMapping) ([]*Info, error) {
	if q.LabelSelector == "" && q.FieldSelector == "" && !q.All && !q.Lists {
		return nil, errors.New("resource(s) were provided, but no name was specified")
	}
	var out []*Info
	var errs []error
	for _, m := range mappings {
		infos, err := c.list(ctx, q, m)
		out = append(out, infos...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return out, aggregate(errs)
}

// Select reads the objects of a collection that a label selector chooses; "" chooses all. namespace is ignored for
// kinds in none.
func (c *Client) Select(ctx context.Context, m *meta.RESTMapping, namespace, selector string) ([]*Info, error) {
	return c.list(ctx, Request{Namespace: namespace, LabelSelector: selector, Limit: 500, Accept: JSON}, m)
}

// list reads a collection page by page, of q.Limit objects each. All pages are from the same resourceVersion, as the
// continue token holds it. A token that expired (410) fails the list: pages of two versions would not fit together.
func (c *Client) list(ctx context.Context, q Request, m *meta.RESTMapping) ([]*Info, error) {
	ns := ""
	if m.Scope.Name() == meta.RESTScopeNameNamespace && !q.AllNamespaces {
		ns = q.Namespace
	}
	path, err := CollectionPath(m, ns)
	if err != nil {
		return nil, err
	}
	opts := metav1.ListOptions{LabelSelector: q.LabelSelector, FieldSelector: q.FieldSelector, Limit: q.Limit}
	var out []*Info
	for {
		query := Query(&opts)
		maps.Copy(query, q.Query)
		data, err := c.Do(ctx, http.MethodGet, path, query, nil, "Accept", q.Accept)
		if err != nil {
			return out, listError(err, m, q)
		}
		if q.Collections {
			out = append(out, &Info{Mapping: m, Namespace: ns, Raw: data, client: c})
		} else {
			items, err := decodeList(data)
			if err != nil {
				return out, err
			}
			for i := range items {
				out = append(out, &Info{Mapping: m, Namespace: items[i].GetNamespace(), Name: items[i].GetName(),
					Object: &items[i], client: c})
			}
		}
		var page struct{ Metadata metav1.ListMeta }
		if err := json.Unmarshal(data, &page); err != nil {
			return out, fmt.Errorf("decode the server's list: %w", err)
		}
		if opts.Continue = page.Metadata.Continue; opts.Continue == "" {
			return out, nil
		}
	}
}

// listError says which selector the server did not understand.
func listError(err error, m *meta.RESTMapping, q Request) error {
	var status *apierrors.StatusError
	if (apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)) && errors.As(err, &status) {
		gvr := m.Resource
		switch {
		case q.LabelSelector == "" && q.FieldSelector == "":
			status.ErrStatus.Message = fmt.Sprintf("Unable to list %q: %s", gvr, status.ErrStatus.Message)
		default:
			status.ErrStatus.Message = fmt.Sprintf(
				"Unable to find %q that match label selector %q, field selector %q: %s", gvr, q.LabelSelector,
				q.FieldSelector, status.ErrStatus.Message)
		}
	}
	return err
}

// decodeList decodes the items of a list; they have kind and apiVersion.
func decodeList(data []byte) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("decode the server's list: %w", err)
	}
	return list.Items, nil
}

// resolveFiles reads the documents of files, finds their resources and, with q.Latest, their current state. Documents
// that cannot be read do not hide the others, unless q.StopAtFirst.
func (c *Client) resolveFiles(ctx context.Context, q Request) ([]*Info, error) {
	docs, err := c.Read(ctx, q.Files)
	var out []*Info
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	selector, err := labels.Parse(q.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("the provided selector %q is not valid: %w", q.LabelSelector, err)
	}
	for _, d := range docs {
		info, err := c.fromFile(d, q)
		if err != nil {
			errs = append(errs, err)
			if q.StopAtFirst {
				break
			}
			continue
		}
		if !selector.Matches(labels.Set(d.Object.GetLabels())) {
			continue
		}
		if q.Latest {
			if err := c.read(ctx, q, info); err != nil {
				if !(q.IgnoreNotFound && apierrors.IsNotFound(err)) {
					errs = append(errs, err)
					if q.StopAtFirst {
						break
					}
				}
				continue
			}
		}
		out = append(out, info)
	}
	return out, aggregate(errs)
}

// fromFile finds the resource of a document and settles its namespace: the document's own, or else the request's. A
// document that contradicts --namespace is refused, because kubectl cannot know which one the user meant.
func (c *Client) fromFile(d Document, q Request) (*Info, error) {
	gvk := d.Object.GroupVersionKind()
	m, err := c.mappingOf(gvk, q.Local)
	if err != nil {
		if meta.IsNoMatchError(err) && d.listed {
			return nil, fmt.Errorf("unable to recognize %w", err)
		}
		if meta.IsNoMatchError(err) {
			return nil, fmt.Errorf("resource mapping not found for name: %q namespace: %q from %q: %w\nensure CRDs are installed first",
				d.Object.GetName(), d.Object.GetNamespace(), d.Source, err)
		}
		return nil, fmt.Errorf("unable to recognize %q: %w", d.Source, err)
	}
	info := &Info{Mapping: m, Name: d.Object.GetName(), Source: d.Source, Object: d.Object, client: c}
	if q.Local {
		info.Namespace = d.Object.GetNamespace()
		return info, nil
	}
	if !info.Namespaced() {
		d.Object.SetNamespace("")
		return info, nil
	}
	own := d.Object.GetNamespace()
	if own == "" && q.AllNamespaces && q.Latest {
		return nil, fmt.Errorf("no namespace set on resource %s %q", m.Resource, info.Name)
	}
	if own == "" {
		own = q.Namespace
		d.Object.SetNamespace(own)
	}
	if q.ExplicitNamespace && own != "" && own != q.Namespace {
		return nil, fmt.Errorf("the namespace from the provided object %q does not match the namespace %q. You must pass '--namespace=%s' to perform this operation.", own, q.Namespace, own)
	}
	info.Namespace = own
	return info, nil
}
