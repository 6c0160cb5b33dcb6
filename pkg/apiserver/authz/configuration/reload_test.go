package configuration

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/request"
)

// modes is what decides by modes: it says which they are.
type modes []Mode

func (m modes) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.NoOpinion, m.String(), nil
}

func (m modes) ReviewRules(context.Context, *request.User, string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{EvaluationError: m.String()}
}

func (m modes) String() string {
	var names []string
	for _, one := range m {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

// TestReload: a good change holds, a bad one changes nothing and counts, and one that was mended holds again.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "authz.yaml")
		write := func(authorizers string) {
			t.Helper()
			text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: " +
				authorizers + "\n"
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
		const first = "[{type: RBAC, name: rbac}, {type: AlwaysDeny, name: alwaysdeny}]"
		write(first)
		counted := prometheus.NewRegistry()
		a, err := Open(path, Options{Log: slog.New(slog.DiscardHandler),
			Metrics: configfile.NewMetrics(counted, "authorization", "me"), Build: func(m []Mode) (Built, error) {
				if Uses(m, ABAC) {
					return nil, errors.New("no policies")
				}
				return modes(m), nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		for _, step := range []struct {
			authorizers, want string
			good, bad         float64
		}{
			{first, "rbac alwaysdeny", 0, 0},
			{"[{type: AlwaysDeny, name: alwaysdeny}, {type: RBAC, name: rbac}]", "alwaysdeny rbac", 1, 0},
			{"[{type: Magic, name: magic}]", "alwaysdeny rbac", 1, 1},
			{"[{type: AlwaysAllow, name: alwaysallow}]", "alwaysdeny rbac", 1, 2}, // without RBAC
			{"[{type: RBAC, name: rbac}, {type: Node, name: node}]", "alwaysdeny rbac", 1, 3},
			{"[{type: RBAC, name: rbac}, {type: ABAC, name: abac}]", "alwaysdeny rbac", 1, 4},
			{"[{type: RBAC, name: rbac}]", "rbac", 2, 4},
		} {
			write(step.authorizers)
			time.Sleep(2 * time.Second) // of the test's own clock: the file is looked at in between
			synctest.Wait()
			_, got, _ := a.Authorize(ctx, authz.Attributes{})
			if rules := a.ReviewRules(ctx, nil, "").EvaluationError; got != step.want || rules != step.want {
				t.Errorf("%s: %q decide and %q list", step.authorizers, got, rules)
			}
			good, bad := reloads(t, counted)
			if good != step.good || bad != step.bad {
				t.Errorf("%s: %v good and %v bad reloads", step.authorizers, good, bad)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, got, _ := a.Authorize(ctx, authz.Attributes{}); got != "rbac" {
			t.Errorf("without a file %q decide", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// reloads are the counted ones.
func reloads(t *testing.T, from prometheus.Gatherer) (good, bad float64) {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() != "apiserver_authorization_config_controller_automatic_reloads_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				switch l.GetValue() {
				case "success":
					good = m.GetCounter().GetValue()
				case "failure":
					bad = m.GetCounter().GetValue()
				}
			}
		}
	}
	return good, bad
}

// FuzzParse: no file is a panic, and what is taken has authorizers with names.
func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n" +
		"authorizers: [{type: RBAC, name: rbac}]\n"))
	f.Add([]byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":[` +
		`{"type":"Webhook","name":"w","webhook":{"timeout":"3s","subjectAccessReviewVersion":"v1",` +
		`"matchConditionSubjectAccessReviewVersion":"v1","failurePolicy":"Deny","connectionInfo":` +
		`{"type":"InClusterConfig"},"matchConditions":[{"expression":"request.user == 'a'"}]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Parse(text)
		if err == nil && len(all) == 0 {
			t.Error("a file without authorizers is good")
		}
		for _, m := range all {
			if m.Name == "" || m.Type == Webhook && (m.Webhook == nil || m.Webhook.Timeout.Duration <= 0) {
				t.Errorf("%+v", m)
			}
		}
	})
}
