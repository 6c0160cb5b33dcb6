package main

import (
	"context"
	"fmt"
	"time"
)

const (
	admissionPath = "/apis/admissionregistration.k8s.io/v1"
	// forbidden is a ConfigMap that the last policy of each lot refuses: once it does, all of them are in force.
	forbidden = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forbidden-%d"}}`
)

// measurePolicies makes pods on an API server with none, a hundred, and ten thousand policies that are for other kinds.
func measurePolicies(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	const pods = 2000
	made := 0
	creates := func() (float64, error) {
		from := made
		made += pods
		return srv.load.many(ctx, pods, 16, func(i int) request {
			return request{method: "POST", path: podsPath, body: pod(from+i, ""), want: 201}
		})
	}
	policies := func(from, to int) func() (float64, error) {
		return func() (float64, error) {
			began := time.Now()
			err := srv.policies(ctx, from, to)
			return float64(to-from) / time.Since(began).Seconds(), err
		}
	}
	if _, err := creates(); err != nil { // what the first ones cost
		return nil, err
	}
	out, err := srv.steps(ctx, s, []step{
		{name: "create, 16 clients", n: pods, run: creates},
		{name: "make 100 policies and bindings, until in force", n: 100, run: policies(0, 100)},
		{name: "create beside 100 policies", n: pods, run: creates},
		{name: "make 9,900 more, until in force", n: 9900, run: policies(100, 10000)},
		{name: "create beside 10,000 policies", n: pods, run: creates},
	})
	if err != nil {
		return nil, err
	}
	return append(out, figure{"RSS", "MB", srv.api.memory("VmRSS")}), nil
}

// policies makes policies from…to-1 with their bindings, and waits until they are in force.
func (s *server) policies(ctx context.Context, from, to int) error {
	for _, kind := range []struct {
		path string
		body func(i int) []byte
	}{
		{"/validatingadmissionpolicies", func(i int) []byte {
			resource, rule := `"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]`,
				"object.spec.replicas <= 50"
			if i == to-1 {
				resource, rule = `"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]`,
					fmt.Sprintf("object.metadata.name != 'forbidden-%d'", i)
			}
			return fmt.Appendf(nil, `{"metadata":{"name":"p-%d"},"spec":{"matchConstraints":{"resourceRules":[{%s,"operations":["CREATE","UPDATE"]}]},"validations":[{"expression":%q}]}}`, i, resource, rule)
		}},
		{"/validatingadmissionpolicybindings", func(i int) []byte {
			return fmt.Appendf(nil, `{"metadata":{"name":"p-%[1]d"},"spec":{"policyName":"p-%[1]d","validationActions":["Deny"]}}`, i)
		}},
	} {
		if _, err := s.load.many(ctx, to-from, 16, func(i int) request {
			return request{method: "POST", path: admissionPath + kind.path, body: kind.body(from + i), want: 201}
		}); err != nil {
			return err
		}
	}
	return s.load.until(ctx, 20*time.Millisecond,
		request{method: "POST", path: "/api/v1/namespaces/" + namespace + "/configmaps?dryRun=All",
			body: fmt.Appendf(nil, forbidden, to-1), want: 422})
}
