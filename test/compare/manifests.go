package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// manifest is a document of somebody's, with where it stands.
type manifest struct {
	file   string
	object map[string]any
}

func (m manifest) kind() string { return fmt.Sprint(m.object["kind"]) }

// served is what discovery says of a kind.
type served struct {
	resource   string
	namespaced bool
}

// readManifests reads the objects of all YAML and JSON files below a directory, each text once. What is no object, such
// as a chart's template, is left out.
func readManifests(dir string) ([]manifest, error) {
	var out []manifest
	seen := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() ||
			!slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, doc := range bytes.Split(append([]byte("\n"), raw...), []byte("\n---")) {
			var object map[string]any
			if yaml.Unmarshal(doc, &object) != nil {
				continue
			}
			for _, o := range listed(object) {
				name, _ := field(o, "metadata", "name").(string)
				if t := text(o); name != "" && o["kind"] != nil && o["apiVersion"] != nil && !seen[t] &&
					len(t) < 3<<20 {
					seen[t] = true
					out = append(out, manifest{strings.TrimPrefix(path, dir+"/"), o})
				}
			}
		}
		return nil
	})
	return out, err
}

// listed are the items of a List, or the object itself.
func listed(object map[string]any) []map[string]any {
	items, ok := object["items"].([]any)
	if !ok || object["kind"] != "List" {
		return []map[string]any{object}
	}
	var out []map[string]any
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// compareManifests makes the objects of a directory on both servers, first definitions and namespaces, and asks of each
// what clients do; each is also asked for changed at random, n times. Of each kind, at most perKind objects of each
// directory below dir are tried.
func (p *pair) compareManifests(ctx context.Context, dir, only string, n, perKind int) error {
	all, err := readManifests(dir)
	if err != nil {
		return err
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var definitions, objects []manifest
	namespaces := map[string]bool{}
	count := map[string]int{}
	for _, m := range all {
		if m.kind() == "CustomResourceDefinition" {
			definitions = append(definitions, m)
			continue
		}
		set, _, _ := strings.Cut(m.file, "/")
		key := set + " " + fmt.Sprint(m.object["apiVersion"]) + " " + m.kind()
		if count[key]++; count[key] > perKind || !match.MatchString(m.file) {
			continue
		}
		if ns, ok := field(m.object, "metadata", "namespace").(string); ok {
			namespaces[ns] = true
		}
		objects = append(objects, m)
	}
	var established []string
	for _, m := range definitions {
		if m.object["apiVersion"] != "apiextensions.k8s.io/v1" {
			continue
		}
		if err := p.compareFrom(ctx, m,
			request{Method: http.MethodPost, Path: definitionsPath + "?fieldValidation=Strict&dryRun=All",
				Type: "application/json", Body: text(m.object)}); err != nil {
			return err
		}
		if err := p.compareFrom(ctx, m,
			request{Method: http.MethodPost, Path: definitionsPath + "?fieldManager=kubectl-create",
				Type: "application/json", Body: text(m.object)}); err != nil {
			return err
		}
		established = append(established, definitionsPath+"/"+fmt.Sprint(field(m.object, "metadata", "name")))
	}
	fmt.Printf("%d definitions, %d objects\n", len(established), len(objects))
	for i, s := range p.servers {
		started := time.Now()
		for _, path := range established {
			if err := s.established(ctx, path); err != nil {
				return err
			}
		}
		fmt.Printf("server %d: established after %v more\n", i, time.Since(started).Round(time.Millisecond))
	}
	for ns := range namespaces {
		for _, s := range p.servers {
			if _, err := s.ask(ctx, request{Method: http.MethodPost, Path: "/api/v1/namespaces",
				Type: "application/json", Body: `{"metadata":{"name":"` + ns + `"}}`}); err != nil {
				return err
			}
		}
	}
	for _, path := range established {
		if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: path}); err != nil {
			return err
		}
	}
	if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: definitionsPath, Accept: asTable}); err != nil {
		return err
	}
	kinds, err := p.compareDiscovery(ctx)
	if err != nil {
		return err
	}
	unserved := map[string]int{}
	for _, m := range objects {
		kind, ok := kinds[fmt.Sprint(m.object["apiVersion"])+" "+m.kind()]
		if !ok {
			unserved[fmt.Sprint(m.object["apiVersion"])+" "+m.kind()]++
			continue
		}
		if err := p.compareManifest(ctx, m, kind, n); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(unserved) {
		fmt.Printf("%4d of no kind that is served: %s\n", unserved[key], key)
	}
	return nil
}

const (
	asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asGroup = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// compareDiscovery compares all that discovery and OpenAPI say of groups with a dot, and returns the kinds that there
// are by group version and kind.
func (p *pair) compareDiscovery(ctx context.Context) (map[string]served, error) {
	out := map[string]served{}
	for _, path := range []string{"/api", "/apis"} {
		if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: path}); err != nil {
			return nil, err
		}
		if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: path, Accept: asGroup}); err != nil {
			return nil, err
		}
		a, err := p.servers[0].ask(ctx, request{Method: http.MethodGet, Path: path, Accept: asGroup})
		if err != nil {
			return nil, err
		}
		groups, _ := field(a.Body, "items").([]any)
		for _, g := range groups {
			versions, _ := field(g, "versions").([]any)
			for _, v := range versions {
				group, _ := field(g, "metadata", "name").(string)
				gv := strings.TrimPrefix(group+"/"+fmt.Sprint(field(v, "version")), "/")
				resources, _ := field(v, "resources").([]any)
				for _, r := range resources {
					out[gv+" "+fmt.Sprint(field(r, "responseKind", "kind"))] = served{fmt.Sprint(field(r, "resource")),
						field(r, "scope") == "Namespaced"}
				}
				if strings.HasSuffix(group, ".k8s.io") || !strings.Contains(group, ".") {
					continue
				}
				labels := strings.Split(group, ".")
				slices.Reverse(labels)
				for _, r := range resources {
					if _, err := p.compare(ctx, request{Method: http.MethodGet, Path: "/openapi/v3/apis/" + gv,
						Only: []string{"components", "schemas",
							strings.Join(labels, ".") + "." + fmt.Sprint(field(v, "version")) + "." +
								fmt.Sprint(field(r, "responseKind", "kind"))}}); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return out, nil
}

// compareManifest asks of one object what clients do.
func (p *pair) compareManifest(ctx context.Context, m manifest, kind served, n int) error {
	apiVersion := fmt.Sprint(m.object["apiVersion"])
	path := "/apis/" + apiVersion
	if !strings.Contains(apiVersion, "/") {
		path = "/api/" + apiVersion
	}
	if kind.namespaced {
		ns, _ := field(m.object, "metadata", "namespace").(string)
		if ns == "" {
			ns = "default"
		}
		path += "/namespaces/" + ns
	}
	path += "/" + kind.resource
	object := path + "/" + fmt.Sprint(field(m.object, "metadata", "name"))
	body := text(m.object)
	requests := []request{
		{Method: http.MethodPost, Path: path + "?dryRun=All&fieldValidation=Strict&fieldManager=kubectl-create",
			Body: body},
		{Method: http.MethodPost, Path: path + "?fieldValidation=Warn&fieldManager=kubectl-create", Body: body},
		{Method: http.MethodGet, Path: object, Accept: asTable},
		{Method: http.MethodPatch, Path: object + "?fieldManager=kubectl&fieldValidation=Strict",
			Type: "application/apply-patch+yaml", Body: body},
		{Method: http.MethodPut, Path: object + "?fieldManager=kubectl-replace&fieldValidation=Strict", Body: body},
	}
	for range n {
		doc := copied(m.object).(map[string]any)
		p.random.change(doc, pick(p.random, []int{1, 1, 2, 3}))
		how := pick(p.random, []string{"Strict", "Warn", "Warn"})
		switch p.random.IntN(4) {
		case 0:
			requests = append(requests,
				request{Method: http.MethodPatch,
					Path: object + "?dryRun=All&fieldManager=other&force=true&fieldValidation=" + how,
					Type: "application/apply-patch+yaml", Body: text(doc)})
		case 1:
			requests = append(requests,
				request{Method: http.MethodPut, Path: object + "?dryRun=All&fieldManager=other&fieldValidation=" + how,
					Body: text(doc)})
		default:
			if meta, ok := doc["metadata"].(map[string]any); ok && meta["name"] == field(m.object, "metadata", "name") {
				meta["name"] = fmt.Sprint(meta["name"]) + "-x"
			}
			requests = append(requests,
				request{Method: http.MethodPost, Path: path + "?dryRun=All&fieldManager=other&fieldValidation=" + how,
					Body: text(doc)})
		}
	}
	requests = append(requests,
		request{Method: http.MethodPatch, Path: object + "?fieldManager=other&force=true",
			Type: "application/apply-patch+yaml", Body: body},
		request{Method: http.MethodPatch, Path: object + "?fieldManager=label", Type: "application/merge-patch+json",
			Body: `{"metadata":{"labels":{"a":"b"}}}`},
		request{Method: http.MethodGet, Path: object})
	if m.kind() != "Namespace" {
		requests = append(requests,
			request{Method: http.MethodDelete, Path: object,
				Body: `{"propagationPolicy":"Background","gracePeriodSeconds":0}`})
	}
	for _, r := range requests {
		if r.Type == "" {
			r.Type = "application/json"
		}
		if err := p.compareFrom(ctx, m, r); err != nil {
			return err
		}
	}
	return nil
}

// compareFrom is compare that says from which file the request is.
func (p *pair) compareFrom(ctx context.Context, m manifest, r request) error {
	differ := p.differ
	_, err := p.compare(ctx, r)
	if p.differ > differ {
		fmt.Printf("  from %s\n", m.file)
	}
	return err
}

// established waits until a definition is, or is not there.
func (s server) established(ctx context.Context, path string) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		a, err := s.ask(ctx, request{Method: http.MethodGet, Path: path})
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if a.Code == http.StatusNotFound {
			return nil
		}
		conditions, _ := field(a.Body, "status", "conditions").([]any)
		for _, c := range conditions {
			if field(c, "type") == "Established" && field(c, "status") == "True" ||
				field(c, "type") == "NamesAccepted" && field(c, "status") == "False" ||
				field(c, "type") == "KubernetesAPIApprovalPolicyConformant" && field(c, "status") == "False" {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not established", path)
}
