package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

func (s *Service) info() object {
	return object{"title": "Kubernetes", "version": s.cfg.Version}
}

// buildV2 makes the one document of OpenAPI 2.
func (s *Service) buildV2(now *catalog.Snapshot) ([]byte, error) {
	w := &writer{schemas: openapi.NewBuilder(s.cfg.Scheme, openapi.V2), paths: object{}, params: map[string]param{}}
	for _, gv := range now.GroupVersions() {
		if err := w.addAll(operations(gv, w.know(now.Routes(gv))), w.v2, w.shareV2); err != nil {
			return nil, err
		}
	}
	parameters := object{}
	for name, q := range w.params {
		parameters[name] = paramV2(q)
	}
	return json.Marshal(object{
		"swagger": "2.0", "info": s.info(), "paths": w.paths, "definitions": w.schemas.Definitions(), "parameters": parameters,
		"securityDefinitions": object{"BearerToken": bearerToken()}, "security": []any{object{"BearerToken": []any{}}},
	})
}

// buildV3 makes the document of one group version.
func (s *Service) buildV3(now *catalog.Snapshot, gv schema.GroupVersion) ([]byte, error) {
	w := &writer{schemas: openapi.NewBuilder(s.cfg.Scheme, openapi.V3), paths: object{}}
	if err := w.addAll(operations(gv, w.know(now.Routes(gv))), w.v3, paramV3); err != nil {
		return nil, err
	}
	return json.Marshal(object{
		"openapi": "3.0.0", "info": s.info(), "paths": w.paths,
		"components": object{"schemas": w.schemas.Definitions(), "securitySchemes": object{"BearerToken": bearerToken()}},
	})
}

func bearerToken() object {
	return object{"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
}

// writer gathers one document.
type writer struct {
	schemas *openapi.Builder
	paths   object
	// params are the parameters of the document of OpenAPI 2, by the names that operations refer to them with.
	params map[string]param
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
func (w *writer) addAll(ops []operation, render func(operation, parts) object, describe func(param) object) error {
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
func (w *writer) describe(path string, ops []operation, describe func(param) object) {
	count := map[param]int{}
	for _, o := range ops {
		slices.SortFunc(o.params, func(a, b param) int { return strings.Compare(a.name, b.name) })
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
	if o.text {
		p.answer = &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}}}
	} else if p.answer, err = w.schema(o.answer); err != nil {
		return fmt.Errorf("answer of %s: %w", o.id, err)
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
	out := object{
		"description": o.description, "operationId": o.id, "tags": []string{tag(o.gv)}, "x-kubernetes-action": o.action,
		"x-kubernetes-group-version-kind": object{"group": o.kind.Group, "version": o.kind.Version, "kind": o.kind.Kind},
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
	if o.text {
		return []string{"*/*"}
	}
	types := []string{"application/json", "application/yaml"}
	if !o.jsonOnly {
		types = append(types, "application/vnd.kubernetes.protobuf")
	}
	if o.action == "list" && !o.jsonOnly {
		types = append(types, "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
	}
	return types
}

// consumed are the media types of bodies.
func consumed(o operation) []string {
	switch {
	case o.patch && o.jsonOnly:
		return []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	case o.patch:
		return []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	case o.jsonOnly:
		return []string{"application/json", "application/yaml"}
	}
	return []string{"*/*"}
}

// required says that a body must be given: all but the options of a deletion.
func required(o operation, body object) object {
	if o.body.Kind != "DeleteOptions" {
		body["required"] = true
	}
	return body
}

// described is what v2 and v3 say alike of a parameter.
func described(q param) object {
	out := object{"name": q.name, "in": "query", "description": q.description}
	if q.inPath {
		out["in"], out["required"] = "path", true
	}
	return out
}

func paramV2(q param) object {
	out := described(q)
	out["type"], out["uniqueItems"] = q.kind, true
	return out
}

// shareV2 refers to a parameter, which stands in the document once: many operations have the same ones, with long descriptions.
func (w *writer) shareV2(q param) object {
	sum := sha256.Sum256(fmt.Append(nil, q))
	name := q.name + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
	w.params[name] = q
	return object{"$ref": "#/parameters/" + name}
}

func paramV3(q param) object {
	out := described(q)
	out["schema"] = object{"type": q.kind, "uniqueItems": true}
	return out
}

func (w *writer) v2(o operation, p parts) object {
	out := common(o)
	out["consumes"], out["produces"], out["schemes"] = consumed(o), produced(o), []string{"https"}
	if p.body != nil {
		out["parameters"] = []any{required(o, object{"name": "body", "in": "body", "schema": p.body})}
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
		out["requestBody"] = required(o, object{"content": content(consumed(o), p.body)})
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
