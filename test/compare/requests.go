package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed objects/*.yaml
var files embed.FS

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// subject is what requests are made of.
type subject struct {
	// Path is the collection that Object belongs to.
	Path         string         `json:"path"`
	Weight       int            `json:"weight"`
	Subresources []string       `json:"subresources"`
	Object       map[string]any `json:"object"`
	// Dry: nothing is ever changed, as what the server makes of it comes later.
	Dry bool `json:"dry"`
	// Strategic: it takes strategic merge patches.
	Strategic bool `json:"strategic"`
}

func (s *subject) name() string { return field(s.Object, "metadata", "name").(string) }

// pair are the two servers, and what came of comparing them.
type pair struct {
	servers  [2]server
	random   random
	subjects []*subject
	// definitions are in force all the time.
	definitions []map[string]any
	// intended counts the differences that should be, by reason.
	intended map[string]int
	asked    int
	differ   int
}

// prepare makes the definitions and the objects on both servers, and waits until they are served.
func (p *pair) prepare(ctx context.Context) error {
	for name, to := range map[string]any{"objects/definitions.yaml": &p.definitions,
		"objects/objects.yaml": &p.subjects} {
		raw, err := files.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(raw, to)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, s := range p.servers {
		for _, crd := range p.definitions {
			if a, err := s.ask(ctx, request{Method: http.MethodPost, Path: definitionsPath, Type: "application/json",
				Body: text(crd)}); err != nil || a.Code != http.StatusCreated && a.Code != http.StatusConflict {
				return fmt.Errorf("server %d: %d %v %v", i, a.Code, field(a.Body, "message"), err)
			}
		}
		for _, subject := range p.subjects {
			if err := s.make(ctx, subject); err != nil {
				return err
			}
		}
	}
	return nil
}

// make creates a subject's object again.
func (s server) make(ctx context.Context, of *subject) error {
	object := of.Path + "/" + of.name()
	for deadline := time.Now().Add(30 * time.Second); ; {
		for _, r := range []request{
			{Method: http.MethodPatch, Path: object, Type: "application/merge-patch+json",
				Body: `{"metadata":{"finalizers":null}}`}, {Method: http.MethodDelete, Path: object},
			{Method: http.MethodPost, Path: of.Path + "?fieldManager=first", Type: "application/json",
				Body: text(of.Object)}} {
			a, err := s.ask(ctx, r)
			if err != nil {
				return err
			}
			if r.Method == http.MethodPost && a.Code == http.StatusCreated {
				return nil
			}
			if r.Method == http.MethodPost &&
				(a.Code == http.StatusUnprocessableEntity || a.Code == http.StatusBadRequest ||
					time.Now().After(deadline)) {
				return fmt.Errorf("%s: %d %v", r, a.Code, field(a.Body, "message"))
			}
		}
	}
}

func text(v any) string {
	raw, _ := json.Marshal(v) // made here or read from a file
	return string(raw)
}

func (p *pair) compareRequests(ctx context.Context, n int) error {
	var weighted []*subject
	for _, s := range p.subjects {
		for range s.Weight {
			weighted = append(weighted, s)
		}
	}
	for range n {
		s := pick(p.random, weighted)
		r, dry := p.random.request(s)
		same, err := p.compare(ctx, r)
		if err != nil {
			return err
		}
		if !same && !dry || p.random.IntN(25) == 0 && !s.Dry {
			for _, server := range p.servers {
				if err := server.make(ctx, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare asks both and tells of what differs.
func (p *pair) compare(ctx context.Context, r request) (bool, error) {
	var answers [2]answer
	for i, s := range p.servers {
		a, err := s.ask(ctx, r)
		if err != nil {
			a = answer{Body: "no answer: " + err.Error()}
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if len(r.Only) > 0 {
			a.Body = field(a.Body, r.Only...)
		}
		answers[i] = steady(a)
	}
	p.asked++
	if reflect.DeepEqual(answers[0], answers[1]) {
		return true, nil
	}
	var lines []string
	difference("code", answers[0].Code, answers[1].Code, &lines)
	difference("warnings", answers[0].Warnings, answers[1].Warnings, &lines)
	difference("body", answers[0].Body, answers[1].Body, &lines)
	if reason := intendedReason(r, answers, lines); reason != "" {
		p.intended[reason]++
		return false, nil
	}
	p.differ++
	fmt.Printf("DIFFERENT %d: %.3000s\n%s\n", p.asked, r, strings.Join(lines, "\n"))
	return false, nil
}

// request is one about a subject, and whether it changes nothing.
func (r random) request(s *subject) (request, bool) {
	doc := copied(s.Object).(map[string]any)
	query := url.Values{}
	path := s.Path + "/" + s.name()
	dry := s.Dry || r.IntN(2) == 0
	if r.IntN(8) == 0 {
		return r.read(s, path), true
	}
	if dry {
		query.Set("dryRun", "All")
	} else if r.IntN(30) == 0 {
		query.Set("dryRun", "Some")
	}
	if v := pick(r, []string{"", "", "", "Strict", "Strict", "Ignore", "Warn", "Other"}); v != "" {
		query.Set("fieldValidation", v)
	}
	if v := pick(r, []string{"", "m1", "m2", "m3", "first", "é", strings.Repeat("x", 130)}); v != "" {
		query.Set("fieldManager", v)
	}
	out := request{Object: path, Type: "application/json",
		Accept: pick(r, []string{"", "", "", "", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
			"application/json;as=Table;v=v1;g=meta.k8s.io"})}
	if len(s.Subresources) > 0 && r.IntN(4) == 0 {
		sub := pick(r, s.Subresources)
		out.Accept = "" // what forms subresources have differs
		path += "/" + sub
		if sub == "scale" {
			doc = map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale",
				"metadata": map[string]any{"name": s.name(), "namespace": "default"},
				"spec":     map[string]any{"replicas": 3.0}}
		}
	}
	changes := pick(r, []int{0, 1, 1, 1, 2, 3})
	switch verb := r.IntN(12); {
	case verb < 2:
		out.Method, out.Path = http.MethodPost, s.Path
		if r.IntN(2) == 0 {
			doc["metadata"].(map[string]any)["name"] = "other"
			if !dry { // what is made stays
				query.Set("dryRun", "All")
				dry = true
			}
		}
		r.change(doc, changes)
	case verb < 4:
		out.Method, out.Path = http.MethodPut, path
		if v := pick(r, []string{"", "$VERSION", "$VERSION", "1", "x"}); v != "" {
			doc["metadata"].(map[string]any)["resourceVersion"] = v
		}
		r.change(doc, changes)
	case verb < 8:
		out.Method, out.Path, out.Type = http.MethodPatch, path, "application/apply-patch+yaml"
		if query.Get("fieldManager") == "" && r.IntN(4) > 0 {
			query.Set("fieldManager", "m1")
		}
		if v := pick(r, []string{"", "true", "true", "false", "x"}); v != "" {
			query.Set("force", v)
		}
		if r.IntN(2) == 0 {
			r.part(doc)
		}
		r.change(doc, changes)
	case verb < 9 && s.Strategic:
		out.Method, out.Path, out.Type = http.MethodPatch, path, "application/strategic-merge-patch+json"
		r.change(doc, changes)
		r.part(doc)
		r.directives(doc)
	case verb < 10:
		out.Method, out.Path, out.Type = http.MethodPatch, path, "application/merge-patch+json"
		r.change(doc, changes)
		r.part(doc)
	case verb < 11:
		out.Method, out.Path, out.Type = http.MethodPatch, path, "application/json-patch+json"
		out.Body = text(r.operations(doc))
	default:
		out.Method, out.Path, out.Body = http.MethodDelete, path,
			pick(r, []string{"", `{"preconditions":{"resourceVersion":"1"}}`, `{"preconditions":{"uid":"x"}}`,
				`{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"x"}`, `{"kind":"x"}`,
				`{"gracePeriodSeconds":-1}`, `{"zz":1}`, `{"orphanDependents":true,"propagationPolicy":"Orphan"}`,
				`{"apiVersion":"v1","kind":"DeleteOptions"}`, `[]`, `{`})
		query.Set("dryRun", "All") // what is removed is gone; with a body, the query says nothing
		out.Body = strings.Replace(out.Body, "{", `{"dryRun":["All"]`+pick(r, []string{"", "", " "})+",", 1)
		out.Body = strings.Replace(out.Body, `,}`, "}", 1)
		dry = true
	}
	if out.Body == "" && out.Method != http.MethodDelete {
		out.Body = text(doc)
	}
	if r.IntN(25) == 0 { // a key twice, or something after the end
		if r.IntN(2) == 0 {
			out.Body = strings.Replace(out.Body, `"metadata":{`, `"metadata":{"generateName":"a","generateName":"b",`,
				1)
		} else {
			out.Body += pick(r, []string{"}", " x", "\n---\na: b", "{}"})
		}
	}
	if r.IntN(40) == 0 {
		out.Type = pick(r, []string{"", "application/yaml", "application/cbor", "application/apply-patch+cbor",
			"text/plain", "application/strategic-merge-patch+json", "application/json;charset=utf-8", "/"})
	}
	if encoded := query.Encode(); encoded != "" {
		out.Path += "?" + encoded
	}
	return out, dry
}

// directives adds one of a strategic merge patch's somewhere.
func (r random) directives(doc map[string]any) {
	var maps []map[string]any
	for _, p := range places(doc, "", nil) {
		if m, ok := p.get().(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	if len(maps) == 0 || r.IntN(2) == 0 {
		return
	}
	m := pick(r, maps)
	switch r.IntN(4) {
	case 0:
		m["$patch"] = pick(r, []any{"delete", "replace", "merge", "x", 1.0})
	case 1:
		m["$retainKeys"] = pick(r, []any{[]any{"name"}, []any{}, "x"})
	case 2:
		m["$setElementOrder/containers"] = pick(r,
			[]any{[]any{map[string]any{"name": "d"}, map[string]any{"name": "c"}}, []any{"c"}, []any{map[string]any{}}})
	default:
		m["$deleteFromPrimitiveList/args"] = pick(r, []any{[]any{"x"}, []any{1.0}, "x"})
	}
}

// read asks for objects without changing them.
func (r random) read(s *subject, path string) request {
	out := request{Method: http.MethodGet, Path: pick(r, []string{path, s.Path, s.Path, path + "x"}),
		Accept: pick(r, []string{"", "application/json;as=Table;v=v1;g=meta.k8s.io",
			"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
			"application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor",
			"application/json;as=Nothing;v=v1;g=meta.k8s.io"})}
	// texts are not compared by field
	if out.Accept == "application/yaml" || out.Accept == "application/vnd.kubernetes.protobuf" {
		out.Accept = ""
	}
	if len(s.Subresources) > 0 && out.Path == path && r.IntN(2) == 0 {
		out.Path += "/" + pick(r, s.Subresources)
	}
	return request{Method: out.Method, Accept: out.Accept,
		Path: out.Path + pick(r,
			[]string{"", "", "?fieldSelector=spec.color%3Dred", "?fieldSelector=spec.color%21%3Dred,metadata.name%3Dw",
				"?fieldSelector=spec.replicas%3D2", "?fieldSelector=metadata.name%3Dw",
				"?fieldSelector=spec.nothing%3D1", "?fieldSelector=x", "?labelSelector=a%3Db", "?labelSelector=a+in+(b",
				"?limit=1", "?limit=-1", "?continue=x", "?resourceVersion=0&resourceVersionMatch=Exact",
				"?resourceVersionMatch=NotOlderThan", "?resourceVersion=x", "?pretty=1",
				"?resourceVersion=0", "?sendInitialEvents=true", "?timeoutSeconds=x"})}
}
