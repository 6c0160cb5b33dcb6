package openapi

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
)

// operation is one verb on one path, before it takes the form of v2 or v3.
type operation struct {
	path, method string
	id           string
	description  string
	action       string // x-kubernetes-action
	kind         schema.GroupVersionKind
	gv           schema.GroupVersion
	params       []param
	// body and answer are kinds of the document; patch is a patch's body, text an answer that is no object.
	body, answer schema.GroupVersionKind
	patch, text  bool
	// jsonOnly: the objects have no other form. Of custom resources Kubernetes says less besides: no watches, no 201 of patches, no
	// body of deletions of a collection.
	jsonOnly bool
	created  bool // answers 201 and 202 beside 200
}

// param is a parameter in a path or query.
type param struct {
	name, kind, description string
	inPath                  bool
}

// place is where a resource's paths stand.
type place struct {
	gv         schema.GroupVersion
	row        *resources.Row
	dynamic    bool
	base       string // …/namespaces/{namespace}/pods
	scope      string // "Namespaced" or ""
	pathParams []param
}

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

func nameParam(kind string) param {
	return param{name: "name", kind: "string", description: "name of the " + kind, inPath: true}
}

// operations lists everything that gv serves.
func operations(gv schema.GroupVersion, routes []*catalog.Route) []operation {
	var out []operation
	for _, rt := range routes {
		r := rt.Row
		p := place{gv: gv, row: r, dynamic: rt.Version.Dynamic(), base: "/" + groupPath(gv) + "/" + r.Resource}
		if r.Namespaced {
			if !r.NotStored {
				out = append(out, p.list(title(r.GVK.Kind)+"ForAllNamespaces"))
			}
			p.base = "/" + groupPath(gv) + "/namespaces/{namespace}/" + r.Resource
			p.scope = "Namespaced"
			p.pathParams = []param{{name: "namespace", kind: "string", description: "object name and auth scope, such as for teams and projects", inPath: true}}
		}
		out = append(out, p.main()...)
		for i := range r.Subresources {
			if sub := &r.Subresources[i]; rt.Version.Has(sub.Name) {
				out = append(out, p.sub(sub)...)
			}
		}
	}
	return out
}

func (p *place) kind() schema.GroupVersionKind { return p.gv.WithKind(p.row.GVK.Kind) }

func (p *place) op(path, method, verb, name, action string, extra ...param) operation {
	return operation{
		path: path, method: method, id: verb + camel(p.gv) + name, action: action, gv: p.gv, kind: p.kind(), answer: p.kind(), jsonOnly: p.dynamic,
		params: slices.Concat(p.pathParams, extra, []param{prettyParam()}),
	}
}

func (p *place) list(name string) operation {
	o := p.op(p.base, "get", "list", name, "list", listParams()...)
	o.description = "list or watch objects of kind " + p.row.GVK.Kind
	if p.dynamic {
		o.description = "list objects of kind " + p.row.GVK.Kind
	}
	o.answer = p.gv.WithKind(p.row.List())
	return o
}

// main are the operations on the resource itself.
func (p *place) main() []operation {
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
	del.description, del.answer = "delete "+withArticle(kind), statusKind
	del.body = schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	ops := []operation{p.list(name), create, get, put, patch, del}
	if !p.row.NoDeleteCollection {
		all := p.op(p.base, "delete", "delete", "Collection"+name, "deletecollection", listParams()...)
		all.description, all.answer = "delete collection of "+kind, statusKind
		if !p.dynamic {
			all.body, all.params = del.body, slices.Concat(p.pathParams, selectionParams(), deleteParams(), []param{prettyParam()})
		}
		ops = append(ops, all)
	}
	return ops
}

// sub are the operations on a subresource.
func (p *place) sub(s *resources.Subresource) []operation {
	parent := p.row.GVK.Kind
	kind := p.kind()
	if s.GVK != nil {
		kind = *s.GVK
	}
	path := p.base + "/{name}/" + s.Name
	name := p.scope + parent + title(s.Name)
	connect := connects(s.Name)
	var ops []operation
	for _, verb := range s.Verbs {
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
		case s.Name == "log":
			o.method, o.id, o.action, o.text = "get", "read"+camel(p.gv)+name, "get", true
			o.description = "read log of the specified " + parent
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
	}
	return ops
}

// withArticle is "a Pod" or "an Event": upstream goes by the letter, so that it is "an Usage".
func withArticle(kind string) string {
	if kind != "" && strings.ContainsRune("AEIOU", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}

// connects tells whether a subresource takes over the exchange.
func connects(name string) bool {
	return slices.Contains([]string{"attach", "exec", "portforward", "proxy"}, name)
}

func connectMethods() map[string]string {
	return map[string]string{"create": "post", "delete": "delete", "get": "get", "patch": "patch", "update": "put"}
}
