package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	thingsPath      = "/apis/bench.example.com/v1/namespaces/" + namespace + "/things"
)

// measureCustomResources puts loads of custom resources with a schema on a fresh API server; then ten times as many,
// and tells what another one that starts on them holds when it has read them, beyond what one without any holds, for
// each byte of their JSON.
func measureCustomResources(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	if err := srv.define(ctx); err != nil {
		return nil, err
	}
	create := func(from, n int) (float64, error) {
		return srv.load.many(ctx, n, 16, func(i int) request {
			return request{method: "POST", path: thingsPath, body: thing(from + i), want: 201}
		})
	}
	list := request{method: "GET", path: thingsPath, want: 200}
	out, err := srv.steps(ctx, s, []step{
		{name: "create custom resources, 16 clients", needed: true, n: s.pods, run: func() (float64, error) {
			return create(0, s.pods)
		}},
		{name: "list all as JSON, 2 clients", n: 50, run: func() (float64, error) {
			return srv.load.many(ctx, 50, 2, func(int) request { return list })
		}},
	})
	if err != nil || !strings.Contains("memory", s.scenario) {
		return out, err
	}
	memory, err := srv.customMemory(ctx, 9*s.pods, create, list)
	return append(out, memory...), err
}

// customMemory makes more custom resources, beside a ninth as many that there are, and measures a server that has read
// none and all of them.
func (s *server) customMemory(ctx context.Context, more int, create func(from, n int) (float64, error),
	list request) ([]figure, error) {
	if _, err := create(more/9, more); err != nil {
		return nil, err
	}
	s.api.stop()
	if err := s.startAPI(ctx); err != nil {
		return nil, err
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	bare := s.api.memory("VmRSS")
	// Kubernetes refuses lists until its cache is there
	if err := s.load.until(ctx, 20*time.Millisecond, list); err != nil {
		return nil, err
	}
	bytes, err := s.load.size(ctx, list)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err := s.load.do(ctx, list); err != nil {
			return nil, err
		}
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	rss := s.api.memory("VmRSS")
	return []figure{{"RSS before anybody reads them", "MB", bare},
		{fmt.Sprintf("RSS after %d were listed", more+more/9), "MB", rss},
		{"  more, for each byte of their JSON", "bytes", (rss - bare) * (1 << 20) / float64(bytes)}}, nil
}

// define makes the custom resource, and waits until it is served.
func (s *server) define(ctx context.Context) error {
	if err := s.load.do(ctx,
		request{method: "POST", path: definitionsPath, body: []byte(definition), want: 201}); err != nil {
		return err
	}
	if err := s.load.until(ctx, 20*time.Millisecond,
		request{method: "POST", path: thingsPath + "?dryRun=All", body: thing(0), want: 201}); err != nil {
		return fmt.Errorf("the custom resource is not served: %w", err)
	}
	return nil
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.bench.example.com"},"spec":{"group":"bench.example.com","scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","required":["size"],"properties":{"size":{"type":"integer","minimum":0,"maximum":1000000},"image":{"type":"string","maxLength":200},"paused":{"type":"boolean","default":false},
"selector":{"type":"object","additionalProperties":{"type":"string"}},
"ports":{"type":"array","maxItems":100,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name","port"],"properties":{"name":{"type":"string"},"port":{"type":"integer"},"protocol":{"type":"string","default":"TCP","enum":["TCP","UDP"]}}}},
"env":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}}},
"status":{"type":"object","properties":{"ready":{"type":"integer"}}}}}}}]}}`

// thing is a custom resource of ordinary size.
func thing(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"bench.example.com/v1","kind":"Thing","metadata":{"name":"t-%d","labels":{"app":"bench","group":"g%d"},"annotations":{"note":"a thing of an ordinary size"}},"spec":{"size":%d,"image":"example.org/app:1.0","selector":{"app":"bench","tier":"front"},"ports":[{"name":"http","port":8080},{"name":"metrics","port":9090}],"env":[{"name":"A","value":"1"},{"name":"B","value":"some longer value"}]}}`, i, i%7, i)
}
