package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// compareDefinitions makes definitions that were changed at random, one after another, waits until the servers have
// judged them, compares what they and discovery and OpenAPI say of them, and removes them.
func (p *pair) compareDefinitions(ctx context.Context, n int) error {
	var of *subject
	for _, s := range p.subjects {
		if s.Path == definitionsPath {
			of = s
		}
	}
	for i := range n {
		group := fmt.Sprintf("d%d.example.com", i)
		crd := copied(of.Object).(map[string]any)
		crd["metadata"].(map[string]any)["name"] = "things." + group
		spec := crd["spec"].(map[string]any)
		spec["group"] = group
		spec["conversion"] = map[string]any{"strategy": "None"}
		p.random.change(spec["names"].(map[string]any), p.random.IntN(2))
		for _, v := range spec["versions"].([]any) {
			p.random.change(v.(map[string]any), p.random.IntN(4))
		}
		object := definitionsPath + "/" + fmt.Sprint(field(crd, "metadata", "name"))
		if _, err := p.compare(ctx,
			request{Method: http.MethodPost, Path: definitionsPath, Type: "application/json", Body: text(crd)}); err !=
			nil {
			return err
		}
		there := 0
		for _, s := range p.servers {
			made, err := s.judged(ctx, object, group)
			if err != nil {
				return err
			}
			if made {
				there++
			}
		}
		if there == len(p.servers) {
			for path, only := range map[string][]string{object: nil, "/apis/" + group: nil,
				"/apis/" + group + "/v1": nil, "/apis/" + group + "/v1beta1": nil,
				"/openapi/v3/apis/" + group + "/v1":                       schemaOf(group, "v1"),
				"/openapi/v3/apis/" + group + "/v1beta1":                  schemaOf(group, "v1beta1"),
				"/apis/" + group + "/v1/namespaces/default/things":        nil,
				"/apis/apiregistration.k8s.io/v1/apiservices/v1." + group: nil} {
				if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: path, Only: only}); err != nil {
					return err
				}
			}
		}
		for _, s := range p.servers {
			if _, err := s.ask(ctx, request{Method: http.MethodDelete, Path: object}); err != nil {
				return err
			}
		}
	}
	return nil
}

// schemaOf is where an OpenAPI document has what a definition says of its kind: what else is in there differs, which
// docs/architecture.md lists.
func schemaOf(group, version string) []string {
	labels := strings.Split(group, ".")
	slices.Reverse(labels)
	return []string{"components", "schemas", strings.Join(labels, ".") + "." + version + ".Thing"}
}

// judged waits until a definition is established and told of, or refused its names. False if there is none.
func (s server) judged(ctx context.Context, object, group string) (bool, error) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		a, err := s.ask(ctx, request{Method: http.MethodGet, Path: object})
		if err != nil || a.Code == http.StatusNotFound {
			return false, err
		}
		conditions, _ := field(a.Body, "status", "conditions").([]any)
		for _, c := range conditions {
			if field(c, "type") == "NamesAccepted" && field(c, "status") == "False" {
				return true, nil
			}
		}
		if told, err := s.ask(ctx, request{Method: http.MethodGet, Path: "/openapi/v3"}); err != nil {
			return false, err
		} else if field(told.Body, "paths", "apis/"+group+"/v1") != nil ||
			field(told.Body, "paths", "apis/"+group+"/v1beta1") != nil {
			return true, nil
		}
	}
	return true, nil // a version that is not served is told of nowhere
}
