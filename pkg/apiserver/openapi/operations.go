package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
)

// operation is one verb on one path, before it takes the form of v2 or v3.
type operation struct {
	path, method string
	id           string
	description  string
	action       string // x-kubernetes-action; "": it is about no kind
	kind         schema.GroupVersionKind
	tag          string
	params       []param
	// body and answer are kinds of the document; patch is a patch's body. An answer that is no kind is of a type, or
	// text.
	body, answer schema.GroupVersionKind
	answerType   reflect.Type
	patch, text  bool
	// consumes and produces are the media types of bodies and answers where they are not those of all.
	consumes, produces []string
	// jsonOnly: the objects have no other form. Of custom resources Kubernetes says less besides: no watches, no 201 of
	// patches, no body of deletions of a collection.
	jsonOnly bool
	created  bool // answers 201 and 202 beside 200
}

// param is a parameter in a path or query.
type param struct {
	name, kind, description string
	inPath                  bool
}

// resourcePaths makes the operations on the paths of one resource.
type resourcePaths struct {
	gv         schema.GroupVersion
	row        *resources.Row
	dynamic    bool
	base       string // …/namespaces/{namespace}/pods
	scope      string // "Namespaced" or ""
	pathParams []param
	scheme     *runtime.Scheme
}

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

func nameParam(kind string) param {
	return param{name: "name", kind: "string", description: "name of the " + kind, inPath: true}
}

// operations lists everything that gv serves, of the kinds of a scheme.
func operations(gv schema.GroupVersion, routes []*catalog.Route, scheme *runtime.Scheme) []operation {
	var out []operation
	if slices.ContainsFunc(routes, static) {
		out = append(out, resourcesOf(gv))
	}
	for _, rt := range routes {
		r := rt.Row
		p := resourcePaths{gv: gv, row: r, dynamic: rt.Version.Dynamic(), base: "/" + groupPath(gv) + "/" + r.Resource,
			scheme: scheme}
		watched := !r.NotStored && !p.dynamic
		if r.Namespaced {
			if !r.NotStored {
				out = append(out, p.list(title(r.GVK.Kind)+"ForAllNamespaces"))
			}
			if watched {
				out = append(out, p.watchList(r.GVK.Kind+"ListForAllNamespaces"))
			}
			p.base = "/" + groupPath(gv) + "/namespaces/{namespace}/" + r.Resource
			p.scope = "Namespaced"
			p.pathParams = []param{{name: "namespace", kind: "string",
				description: "object name and auth scope, such as for teams and projects", inPath: true}}
		}
		out = append(out, p.main()...)
		if watched {
			out = append(out, p.watchList(p.scope+r.GVK.Kind+"List"), p.watch())
		}
		for i := range r.Subresources {
			if sub := &r.Subresources[i]; rt.Version.Has(sub.Name) {
				out = append(out, p.sub(sub)...)
			}
		}
	}
	return out
}

func (p *resourcePaths) kind() schema.GroupVersionKind { return p.gv.WithKind(p.row.GVK.Kind) }

func (p *resourcePaths) op(path, method, verb, name, action string, extra ...param) operation {
	return operation{
		path: path, method: method, id: verb + camel(p.gv) + name, action: action, tag: tag(p.gv), kind: p.kind(),
		answer: p.kind(), jsonOnly: p.dynamic,
		params: slices.Concat(p.pathParams, extra, []param{prettyParam()}),
	}
}

func (p *resourcePaths) list(name string) operation {
	o := p.op(p.base, "get", "list", name, "list", listParams()...)
	o.description = "list or watch objects of kind " + p.row.GVK.Kind
	if p.dynamic {
		o.description = "list objects of kind " + p.row.GVK.Kind
	}
	o.answer = p.gv.WithKind(p.row.List())
	return o
}

// watchList is a watch of a list by its old path.
func (p *resourcePaths) watchList(name string) operation {
	o := p.watching(p.base, name, "watchlist")
	o.description = "watch individual changes to a list of " + p.row.GVK.Kind +
		". deprecated: use the 'watch' parameter with a list operation instead."
	return o
}

// watch is a watch of one object by its old path.
func (p *resourcePaths) watch() operation {
	o := p.watching(p.base+"/{name}", p.scope+p.row.GVK.Kind, "watch", nameParam(p.row.GVK.Kind))
	o.description = "watch changes to an object of kind " + p.row.GVK.Kind +
		". deprecated: use the 'watch' parameter with a list operation instead, " +
		"filtered to a single item with the 'fieldSelector' parameter."
	return o
}

func (p *resourcePaths) watching(path, name, action string, extra ...param) operation {
	group := "/" + groupPath(p.gv)
	o := p.op(group+"/watch"+strings.TrimPrefix(path, group), "get", "watch", name, action,
		append(listParams(), extra...)...)
	o.answerType = reflect.TypeFor[metav1.WatchEvent]()
	return o
}

// main are the operations on the resource itself.
func (p *resourcePaths) main() []operation {
	kind := p.row.GVK.Kind
	name := p.scope + kind
	create := p.op(p.base, "post", "create", name, "post", writeParams()...)
	create.description, create.body, create.created = "create "+withArticle(kind), p.kind(), true
	if p.row.NotStored && !p.row.Observed {
		return []operation{create}
	}
	object := p.base + "/{name}"
	get := p.op(object, "get", "read", name, "get", nameParam(kind))
	get.description = "read the specified " + kind
	if p.dynamic {
		get.params = append(get.params, getParams()...)
	}
	if p.row.Observed {
		list := p.list(name)
		list.description = "list objects of kind " + kind
		return []operation{list, get}
	}
	put := p.op(object, "put", "replace", name, "put", append(writeParams(), nameParam(kind))...)
	put.description, put.body, put.created = "replace the specified "+kind, p.kind(), true
	patch := p.op(object, "patch", "patch", name, "patch", append(patchParams(), nameParam(kind))...)
	patch.description, patch.patch, patch.created = "partially update the specified "+kind, true, !p.dynamic
	del := p.op(object, "delete", "delete", name, "delete", append(deleteParams(), nameParam(kind))...)
	del.description = "delete " + withArticle(kind)
	if !p.row.Strategy.ReturnDeleted {
		del.answer = statusKind
	}
	del.body = schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	ops := []operation{p.list(name), create, get, put, patch, del}
	if !p.row.NoDeleteCollection {
		all := p.op(p.base, "delete", "delete", "Collection"+name, "deletecollection", listParams()...)
		all.description, all.answer = "delete collection of "+kind, statusKind
		if !p.dynamic {
			all.body, all.params = del.body,
				slices.Concat(p.pathParams, selectionParams(), deleteParams(), []param{prettyParam()})
		}
		ops = append(ops, all)
	}
	return ops
}

// sub are the operations on a subresource.
func (p *resourcePaths) sub(s *resources.Subresource) []operation {
	parent := p.row.GVK.Kind
	kind := p.kind()
	if s.GVK != nil {
		kind = *s.GVK
	}
	path := p.base + "/{name}/" + s.Name
	name := p.scope + parent + title(s.Name)
	connect := connects(s.Name)
	var ops []operation
	verbs := s.Verbs
	if s.Name == "proxy" { // what is asked through it may be asked in every way
		verbs = slices.Concat(verbs, []string{"head", "options"})
	}
	for _, verb := range verbs {
		named := kind
		if p.dynamic { // of a custom resource whatever it is is said to be about the kind itself
			named = p.kind()
		}
		o := p.op(path, "", "", "", "", nameParam(named.Kind))
		o.kind, o.answer = named, kind
		switch {
		case connect:
			o.params = slices.DeleteFunc(o.params, func(q param) bool { return q == prettyParam() })
			o.method = connectMethods()[verb]
			o.id = "connect" + camel(p.gv) + title(o.method) + name
			o.action, o.text = "connect", true
			o.description = "connect " + strings.ToUpper(o.method) + " requests to " + s.Name + " of " + parent
			o.params = append(o.params, p.options(named)...)
		case s.Name == "log":
			o.method, o.id, o.action, o.text = "get", "read"+camel(p.gv)+name, "get", true
			o.description = "read log of the specified " + parent
			o.produces = append([]string{"text/plain"}, plainTypes()...)
			o.params = append(o.params, p.options(p.gv.WithKind("PodLogOptions"))...)
		case verb == "get":
			o.method, o.id, o.action = "get", "read"+camel(p.gv)+name, "get"
			o.description = "read " + s.Name + " of the specified " + parent
			if p.dynamic {
				o.params = append(o.params, getParams()...)
			}
		case verb == "create":
			o.method, o.id, o.action = "post", "create"+camel(p.gv)+name, "post"
			o.description, o.body, o.created = "create "+s.Name+" of "+withArticle(parent), kind, true
			o.params = append(o.params, writeParams()...)
		case verb == "update":
			o.method, o.id, o.action = "put", "replace"+camel(p.gv)+name, "put"
			o.description, o.body, o.created = "replace "+s.Name+" of the specified "+parent, kind, true
			o.params = append(o.params, writeParams()...)
		case verb == "patch":
			o.method, o.id, o.action, o.patch, o.created = "patch", "patch"+camel(p.gv)+name, "patch", true, !p.dynamic
			o.description = "partially update " + s.Name + " of the specified " + parent
			o.params = append(o.params, patchParams()...)
		default:
			continue
		}
		ops = append(ops, o)
		if s.Name == "proxy" {
			o.path, o.id = path+"/{path}", o.id+"WithPath"
			o.params = append(slices.Clone(o.params),
				param{name: "path", kind: "string", description: "path to the resource", inPath: true})
			ops = append(ops, o)
		}
	}
	return ops
}

// options are the parameters of a query that a kind of options is.
func (p *resourcePaths) options(gvk schema.GroupVersionKind) []param {
	if obj, err := p.scheme.New(gvk); err == nil {
		if o, ok := obj.(options); ok {
			return queries(o)
		}
	}
	return nil
}

// withArticle is "a Pod" or "an Event": upstream goes by the letters, so that it is "an Usage", and "Endpoints" are
// several.
func withArticle(kind string) string {
	if strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss") {
		return kind
	}
	if kind != "" && strings.ContainsRune("AEIOU", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// connects reports whether a subresource takes over the exchange.
func connects(name string) bool {
	return slices.Contains([]string{"attach", "exec", "portforward", "proxy"}, name)
}

func connectMethods() map[string]string {
	return map[string]string{"create": "post", "delete": "delete", "get": "get", "head": "head", "options": "options",
		"patch": "patch", "update": "put"}
}
