package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// aggregatedDiscovery is how kubectl asks which kinds there are.
const aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// measureDefinitions makes a thousand custom resource definitions, as a machine full of operators has them, that nobody
// reads: how long until the last is served, what they hold in memory, and how long discovery takes.
func measureDefinitions(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	const n = 1000
	if err := settle(ctx); err != nil {
		return nil, err
	}
	bare, cpu, began := srv.api.memory("VmRSS"), srv.api.cpu(), time.Now()
	if _, err := srv.load.many(ctx, n, 16, func(i int) request {
		return request{method: "POST", path: definitionsPath, body: wideDefinition(i), want: 201}
	}); err != nil {
		return nil, err
	}
	made := time.Since(began)
	for i := range n {
		if err := srv.load.until(ctx, 20*time.Millisecond,
			request{method: "GET", path: wideDiscovery(i), want: 200}); err != nil {
			return nil, fmt.Errorf("definition %d is not served: %w", i, err)
		}
	}
	served, used := time.Since(began), srv.api.cpu()-cpu
	discover := func() (time.Duration, error) {
		began := time.Now()
		err := srv.load.do(ctx, request{method: "GET", path: "/apis", accept: aggregatedDiscovery, want: 200})
		return time.Since(began), err
	}
	first, err := discover()
	if err != nil {
		return nil, err
	}
	again, err := discover()
	if err != nil {
		return nil, err
	}
	if err := settle(ctx); err != nil {
		return nil, err
	}
	return []figure{{"1,000 definitions made, 16 clients", "s", made.Seconds()},
		{"all of them served", "s", served.Seconds()}, {"  server CPU", "s", used},
		{"first discovery of all kinds", "ms", first.Seconds() * 1000},
		{"discovery again", "ms", again.Seconds() * 1000},
		{"RSS more, for each definition", "MB", (srv.api.memory("VmRSS") - bare) / n}}, nil
}

// wideDefinition is the definition of kind i, with thirty described fields and a rule; twenty groups share the kinds.
func wideDefinition(i int) []byte {
	var fields strings.Builder
	for f := range 30 {
		fmt.Fprintf(&fields, `"field%d":{"type":"string","maxLength":100,"description":"What the field is for, in a sentence of some length."},`, f)
	}
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"wides%[1]d.g%[2]d.example.com"},"spec":{"group":"g%[2]d.example.com","scope":"Namespaced",
"names":{"plural":"wides%[1]d","singular":"wide%[1]d","kind":"Wide%[1]d"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.size > 0"}],"properties":{%[3]s"size":{"type":"integer"}}},
"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`, i, i%20, &fields)
}

// wideDiscovery is a path that is there once kind i is served.
func wideDiscovery(i int) string {
	return fmt.Sprintf("/apis/g%d.example.com/v1/namespaces/%s/wides%d?limit=1", i%20, namespace, i)
}
