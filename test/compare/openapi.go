package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// The forms that the documents are compared in beside JSON, and what reads each of them: the same fields as the JSON's.
var protobufs = map[string]func([]byte) ([]byte, error){
	"application/com.github.proto-openapi.spec.v2.v1.0+protobuf": func(raw []byte) ([]byte, error) {
		doc := &openapi_v2.Document{}
		if err := proto.Unmarshal(raw, doc); err != nil {
			return nil, err
		}
		return doc.YAMLValue("")
	},
	"application/com.github.proto-openapi.spec.v3.v1.0+protobuf": func(raw []byte) ([]byte, error) {
		doc := &openapi_v3.Document{}
		if err := proto.Unmarshal(raw, doc); err != nil {
			return nil, err
		}
		return doc.YAMLValue("")
	},
}

// kindsOfAll is a difference that is as it should be: group versions that ours does not have.
var kindsOfAll = regexp.MustCompile(
	`\.v1\.(DeleteOptions|WatchEvent)\.x-kubernetes-group-version-kind\n.*\n    our  \[\]$`)

// compareOpenAPI compares all OpenAPI documents of both: every path, operation, parameter, response and definition, in
// JSON and protobuf.
func (p *pair) compareOpenAPI(ctx context.Context) error {
	if err := p.compareDocument(ctx, "/openapi/v2", "v2"); err != nil {
		return err
	}
	paths := map[string]bool{}
	var indexes [2]map[string]bool
	for i, s := range p.servers {
		a, err := s.ask(ctx, request{Method: http.MethodGet, Path: "/openapi/v3"})
		if err != nil {
			return err
		}
		listed, _ := field(a.Body, "paths").(map[string]any)
		indexes[i] = map[string]bool{}
		for path := range listed {
			paths[path], indexes[i][path] = true, true
		}
	}
	p.differences("/openapi/v3", indexes[0], indexes[1])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !indexes[0][path] || !indexes[1][path] {
			continue
		}
		if err := p.compareDocument(ctx, "/openapi/v3/"+path, "v3"); err != nil {
			return err
		}
	}
	return nil
}

// compareDocument compares one document in all its forms.
func (p *pair) compareDocument(ctx context.Context, path, version string) error {
	for _, accept := range append([]string{"application/json"}, slices.Sorted(maps.Keys(protobufs))...) {
		read, isProto := protobufs[accept]
		if isProto && !strings.Contains(accept, "."+version+".") {
			continue
		}
		var docs [2]any
		for i, s := range p.servers {
			a, err := s.ask(ctx, request{Method: http.MethodGet, Path: path, Accept: accept})
			if err != nil {
				return err
			}
			if a.Code != http.StatusOK {
				return fmt.Errorf("%s%s: %d", s.url, path, a.Code)
			}
			docs[i] = a.Body
			if isProto {
				text, err := read([]byte(a.Body.(string)))
				if err != nil {
					return fmt.Errorf("%s%s: %w", s.url, path, err)
				}
				if err := yaml.Unmarshal(text, &docs[i]); err != nil {
					return fmt.Errorf("%s%s: %w", s.url, path, err)
				}
			}
		}
		p.differences(path+" "+accept, docs[0], docs[1])
	}
	return nil
}

// differences counts and prints what of two documents is not the same; parameters, tags and the like are compared in
// their order.
func (p *pair) differences(name string, real, our any) {
	p.asked++
	var lines []string
	difference("", plain(real), plain(our), &lines)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		of := kindsOfAll.MatchString(line)
		if of {
			p.intended["options of deletions and events of watches are kinds of the group versions that are there"]++
		}
		return of
	})
	p.differ += len(lines)
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Printf("%s%s\n", name, line)
	}
}

// plain is a value as JSON has it.
func plain(v any) any {
	raw, _ := json.Marshal(v) // it was read from JSON or YAML, or is a map of names
	var out any
	_ = json.Unmarshal(raw, &out) // as above
	return out
}
