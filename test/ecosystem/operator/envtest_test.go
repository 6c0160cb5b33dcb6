package operator

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestEnvtest uses what envtest offers beyond a client: users with certificates of their own, kubectl, and flags of the
// server.
func TestEnvtest(t *testing.T) {
	if onCluster() {
		t.Skip("the cluster is not envtest's")
	}
	env := newEnvironment(t)
	env.ControlPlane.GetAPIServer().Configure().Append("feature-gates", "AllAlpha=false").Set("advertise-address",
		"127.0.0.1").Set("endpoint-reconciler-type", "none").Set("v", "1")
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	kubectl := func(user envtest.User) func(args ...string) (string, error) {
		u, err := env.AddUser(user, nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := u.Kubectl()
		if err != nil {
			t.Fatal(err)
		}
		return func(args ...string) (string, error) {
			var both bytes.Buffer
			stdout, stderr, err := k.Run(args...)
			for _, r := range []io.Reader{stdout, stderr} {
				if _, err := io.Copy(&both, r); err != nil {
					t.Fatal(err)
				}
			}
			return strings.TrimSpace(both.String()), err
		}
	}
	admin, anne := kubectl(envtest.User{Name: "root", Groups: []string{"system:masters"}}),
		kubectl(envtest.User{Name: "anne", Groups: []string{"gardeners"}})
	for _, step := range []struct {
		as   func(...string) (string, error)
		args []string
		want string
	}{
		{anne, []string{"auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}"},
			`anne ["gardeners","system:authenticated"]`},
		{anne, []string{"get", "websites"},
			`User "anne" cannot list resource "websites" in API group "sites.example.com" in the namespace "default"`},
		{admin, []string{"create", "role", "reader", "--verb=list", "--resource=websites.sites.example.com"},
			"role.rbac.authorization.k8s.io/reader created"},
		{admin, []string{"create", "rolebinding", "reader", "--role=reader", "--group=gardeners"},
			"rolebinding.rbac.authorization.k8s.io/reader created"},
		{anne, []string{"get", "site"}, "No resources found in default namespace."},
		{admin, []string{"explain", "website.spec.pages"}, "The pages' texts by their file names."},
		{admin, []string{"get", "crd", "websites.sites.example.com", "-o", "jsonpath={.status.storedVersions}"},
			`["v1"]`},
	} {
		if out, err := step.as(step.args...); !strings.Contains(out, step.want) {
			t.Errorf("kubectl %v: %s, %v", step.args, out, err)
		}
	}
}

// BenchmarkStart starts and stops envtest's control plane, with the operator's definition and webhooks, and reports the
// memory of the started kube-apiserver. $KUBEBUILDER_ASSETS measures other binaries.
func BenchmarkStart(b *testing.B) {
	var rss float64
	for b.Loop() {
		env := newEnvironment(b)
		if _, err := env.Start(); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		mb, err := residentMB("kube-apiserver")
		if err != nil {
			b.Fatal(err)
		}
		rss += mb
		if err := env.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(rss/float64(b.N), "rss-MB")
}

// residentMB is the resident memory of this process's child of that name.
func residentMB(name string) (float64, error) {
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0, err
	}
	for _, file := range statuses {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			fields[key] = strings.TrimSpace(value)
		}
		if fields["Name"] == name && fields["PPid"] == strconv.Itoa(os.Getpid()) {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(fields["VmRSS"], " kB"), 64)
			return kb / 1e3, err
		}
	}
	return 0, fmt.Errorf("no child %s", name)
}
