package openapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/openapi"
	"bonsai/pkg/apiserver/catalog"
)

// object is a JSON object of the document.
type object = map[string]any

// info names the version as Kubernetes does, without patches: "1.36".
func (s *Service) info() object {
	parts := strings.SplitN(strings.TrimPrefix(s.cfg.Version, "v"), ".", 3)
	return object{"title": "Kubernetes", "version": strings.Join(parts[:min(2, len(parts))], ".")}
}

// buildV2 makes the one document of OpenAPI 2.
func (s *Service) buildV2(now *catalog.Snapshot) ([]byte, error) {
	w := &writer{schemas: openapi.NewBuilder(s.cfg.Scheme, openapi.V2), paths: object{},
		params: map[string]spec.Parameter{}}
	ops := slices.Collect(maps.Values(s.documents(now)))
	for _, gv := range now.GroupVersions() {
		ops = append(ops, operations(gv, w.know(now.Routes(gv)), s.cfg.Scheme)...)
	}
	written := map[param]any{} // thousands of times the same ones
	describe := func(q param) any {
		if written[q] == nil {
			written[q] = w.share(paramV2(q))
		}
		return written[q]
	}
	if err := w.addAll(ops, w.v2, describe); err != nil {
		return nil, err
	}
	return json.Marshal(object{
		"swagger": "2.0", "info": s.info(), "paths": w.paths, "definitions": w.schemas.Definitions(),
		"parameters":          w.params,
		"securityDefinitions": object{"BearerToken": bearerToken()}, "security": []any{object{"BearerToken": []any{}}},
	})
}

// buildV3 makes the document of one group version.
func (s *Service) buildV3(now *catalog.Snapshot, gv schema.GroupVersion) ([]byte, error) {
	w := &writer{schemas: openapi.NewBuilder(s.cfg.Scheme, openapi.V3).About(gv), paths: object{}}
	doc, err := s.writeV3(w, operations(gv, w.know(now.Routes(gv)), s.cfg.Scheme))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(now.Routes(gv), static) { // which Kubernetes writes by other means
		doc["info"] = object{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
		delete(doc["components"].(object), "securitySchemes")
	}
	return json.Marshal(doc)
}

// buildDocument makes the document of a path that is no resource.
func (s *Service) buildDocument(o operation) ([]byte, error) {
	doc, err := s.writeV3(&writer{schemas: openapi.NewBuilder(s.cfg.Scheme, openapi.V3), paths: object{}},
		[]operation{o})
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

func (s *Service) writeV3(w *writer, ops []operation) (object, error) {
	if err := w.addAll(ops, w.v3, func(q param) any { return paramV3(q) }); err != nil {
		return nil, err
	}
	components := object{"securitySchemes": object{"BearerToken": bearerToken()}}
	if all := w.schemas.Definitions(); len(all) > 0 {
		components["schemas"] = all
	}
	return object{"openapi": "3.0.0", "info": s.info(), "paths": w.paths, "components": components}, nil
}

func bearerToken() object {
	return object{"type": "apiKey", "name": "authorization", "in": "header",
		"description": "Bearer Token authentication"}
}

// writer gathers one document.
type writer struct {
	schemas *openapi.Builder
	paths   object
	// params are the parameters of the document of OpenAPI 2, by the names that operations refer to them with.
	params map[string]spec.Parameter
	// dynamic makes the schemas of kinds without a Go type, and of their lists.
	dynamic map[schema.GroupVersionKind]func() (spec.Schema, error)
}

// know lets the writer make the schemas of these routes.
func (w *writer) know(routes []*catalog.Route) []*catalog.Route {
	for _, rt := range routes {
		if !rt.Version.Dynamic() {
			continue
		}
		if w.dynamic == nil {
			w.dynamic = map[schema.GroupVersionKind]func() (spec.Schema, error){}
		}
		w.dynamic[rt.GVK] = func() (spec.Schema, error) { return w.schemas.AddDynamic(rt.GVK, rt.Version.Schema) }
		w.dynamic[rt.GVK.GroupVersion().WithKind(rt.Row.List())] = func() (spec.Schema, error) {
			return w.schemas.AddDynamicList(rt.Row.List(), rt.Row.Resource, rt.GVK, rt.Version.Schema)
		}
	}
	return routes
}

// parts are the schemas of an operation.
type parts struct {
	body, answer *spec.Schema
}

// addAll adds operations in one form: render makes each of them without its parameters, describe makes a parameter.
func (w *writer) addAll(ops []operation, render func(operation, parts) object, describe func(param) any) error {
	byPath := map[string][]operation{}
	for _, o := range ops {
		if err := w.add(o, render); err != nil {
			return err
		}
		byPath[o.path] = append(byPath[o.path], o)
	}
	for path, ops := range byPath {
		w.describe(path, ops, describe)
	}
	return nil
}

// describe adds the parameters of the operations of a path, in order; those that all of them have stand with the path.
func (w *writer) describe(path string, ops []operation, describe func(param) any) {
	count := map[param]int{}
	for _, o := range ops {
		slices.SortFunc(o.params, func(a, b param) int {
			return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.in(), b.in()))
		})
		for _, q := range o.params {
			count[q]++
		}
	}
	item := w.paths[path].(object)
	for i, o := range ops {
		own, _ := item[o.method].(object)
		for _, q := range o.params {
			in := own
			if count[q] == len(ops) {
				in = item
			}
			if i == 0 || count[q] < len(ops) {
				list, _ := in["parameters"].([]any)
				in["parameters"] = append(list, describe(q))
			}
		}
	}
}

func (w *writer) add(o operation, render func(operation, parts) object) error {
	var p parts
	var err error
	if o.patch {
		patch := w.schemas.AddType(reflect.TypeFor[metav1.Patch]())
		p.body = &patch
	} else if p.body, err = w.schema(o.body); err != nil {
		return fmt.Errorf("body of %s: %w", o.id, err)
	}
	switch {
	case o.text:
		p.answer = &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}
	case o.answerType != nil:
		answer := w.schemas.AddType(o.answerType)
		p.answer = &answer
	default:
		if p.answer, err = w.schema(o.answer); err != nil {
			return fmt.Errorf("answer of %s: %w", o.id, err)
		}
	}
	item, _ := w.paths[o.path].(object)
	if item == nil {
		item = object{}
		w.paths[o.path] = item
	}
	item[o.method] = render(o, p)
	return nil
}

func (w *writer) schema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if gvk.Empty() {
		return nil, nil
	}
	if add := w.dynamic[gvk]; add != nil {
		s, err := add()
		return &s, err
	}
	s, err := w.schemas.Add(gvk)
	return &s, err
}

// common is what v2 and v3 write alike.
func common(o operation) object {
	out := object{"description": o.description, "operationId": o.id, "tags": []string{o.tag}}
	if o.action != "" {
		out["x-kubernetes-action"] = o.action
		out["x-kubernetes-group-version-kind"] = object{"group": o.kind.Group, "version": o.kind.Version,
			"kind": o.kind.Kind}
	}
	return out
}

// codes are the statuses of success, with the words upstream has for them.
func codes(o operation) [][2]string {
	out := [][2]string{{"200", "OK"}}
	if o.created {
		out = append(out, [2]string{"201", "Created"})
		if o.method == "post" {
			out = append(out, [2]string{"202", "Accepted"})
		}
	}
	if o.action == "delete" {
		out = append(out, [2]string{"202", "Accepted"})
	}
	return append(out, [2]string{"401", "Unauthorized"})
}

// produced are the media types of answers.
func produced(o operation) []string {
	switch {
	case o.produces != nil:
		return o.produces
	case o.text:
		return []string{"*/*"}
	case o.jsonOnly:
		return []string{jsonType, "application/yaml"}
	}
	types := plainTypes()
	if o.action == "list" || o.action == "watch" || o.action == "watchlist" {
		types = append(types, "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
	}
	return types
}

// consumed are the media types of bodies.
func consumed(o operation) []string {
	switch {
	case o.action == "":
		return o.consumes
	case o.patch && o.jsonOnly:
		return []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	case o.patch:
		return []string{"application/json-patch+json", "application/merge-patch+json",
			"application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	case o.jsonOnly:
		return []string{"application/json", "application/yaml"}
	}
	return []string{"*/*"}
}

// required reports whether a body must be given: all but the options of a deletion.
func required(o operation) bool { return o.body.Kind != "DeleteOptions" }

func (q *param) in() string {
	if q.inPath {
		return "path"
	}
	return "query"
}

func paramV2(q param) spec.Parameter {
	return spec.Parameter{ParamProps: spec.ParamProps{Name: q.name, In: q.in(), Description: q.description,
		Required: q.inPath},
		SimpleSchema: spec.SimpleSchema{Type: q.kind}, CommonValidations: spec.CommonValidations{UniqueItems: true}}
}

// share refers to a parameter, which stands in the document once: many operations have the same ones, with long
// descriptions. Its name is the one that Kubernetes gives it. What is of one kind only, and what old clients look for
// in the operation, stays there.
func (w *writer) share(p spec.Parameter) any {
	raw, err := json.Marshal(p)
	if err != nil {
		return p // which tells it again
	}
	generic := p.Schema == nil || strings.HasPrefix(p.Schema.Ref.String(), "#/definitions/io.k8s.apimachinery")
	if p.Name == "name" || p.In == "query" && (p.Name == "dryRun" || p.Name == "fieldValidation") || !generic {
		return json.RawMessage(raw)
	}
	hash := fnv.New64()
	hash.Write(raw) //nolint:errcheck // it never fails
	name := p.Name + "-" + base64.URLEncoding.EncodeToString(hash.Sum(nil)[:6])
	w.params[name] = p
	return object{"$ref": "#/parameters/" + name}
}

func paramV3(q param) object {
	out := object{"name": q.name, "in": q.in(), "description": q.description,
		"schema": object{"type": q.kind, "uniqueItems": true}}
	if q.inPath {
		out["required"] = true
	}
	return out
}

func (w *writer) v2(o operation, p parts) object {
	out := common(o)
	out["produces"], out["schemes"] = produced(o), []string{"https"}
	if types := consumed(o); types != nil {
		out["consumes"] = types
	}
	if p.body != nil {
		out["parameters"] = []any{
			w.share(spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Required: required(o),
				Schema: p.body}})}
	}
	responses := object{}
	for _, c := range codes(o) {
		r := object{"description": c[1]}
		if c[0] != "401" {
			r["schema"] = p.answer
		}
		responses[c[0]] = r
	}
	out["responses"] = responses
	return out
}

func (w *writer) v3(o operation, p parts) object {
	out := common(o)
	if p.body != nil {
		body := object{"content": content(consumed(o), p.body)}
		if required(o) {
			body["required"] = true
		}
		out["requestBody"] = body
	}
	responses := object{}
	for _, c := range codes(o) {
		r := object{"description": c[1]}
		if c[0] != "401" {
			r["content"] = content(produced(o), p.answer)
		}
		responses[c[0]] = r
	}
	out["responses"] = responses
	return out
}

func content(types []string, s *spec.Schema) object {
	out := object{}
	for _, t := range slices.Clone(types) {
		out[t] = object{"schema": s}
	}
	return out
}
