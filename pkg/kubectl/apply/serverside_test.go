package apply

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestServerSide: the file goes to the server as it is, under the manager of the flags.
func TestServerSide(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	for _, c := range []struct{ args, want, sent string }{
		{"--dry-run=server", "configmap/c serverside-applied (server dry run)\n",
			"?dryRun=All&fieldManager=kubectl&fieldValidation=Strict&force=false"},
		{"", "configmap/c serverside-applied\n", "?fieldManager=kubectl&fieldValidation=Strict&force=false"},
		{"--force-conflicts --field-manager=me --validate=warn", "configmap/c serverside-applied\n",
			"?fieldManager=me&fieldValidation=Warn&force=true"},
	} {
		had := len(s.Log())
		got, code := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`),
			append([]string{"apply", "-f", "-", "--server-side"}, strings.Fields(c.args)...)...)
		if got != c.want || code != 0 {
			t.Errorf("apply %s: code %d, got %q, want %q", c.args, code, got, c.want)
		}
		want := "PATCH " + live + c.sent +
			` {"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}`
		if sent := strings.Join(s.Log()[had:], "\n"); sent != want {
			t.Errorf("apply %s: sent %s\nwant %s", c.args, sent, want)
		}
	}
}

// TestConflict: the user is told how to go on.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t)
	s.Conflict = `Apply failed with 1 conflict: conflict with "x": .data.a`
	got, code := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`), "apply", "-f", "-", "--server-side")
	if want := "error: " + s.Conflict + "\n" + onConflict + "\n"; got != want || code != 1 {
		t.Errorf("code %d, got %q, want %q", code, got, want)
	}
	if got, code := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`), "apply", "-f", "-", "--server-side",
		"--force-conflicts"); code != 0 {
		t.Errorf("forced: code %d, %q", code, got)
	}
}

// TestMigration: what client-side apply had set becomes the fields of the one who applies, and the file is applied
// again.
func TestMigration(t *testing.T) {
	t.Parallel()
	const before = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x"},"managedFields":[
		{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:gone":{}},"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}]},"data":{"gone":"1"}}`
	const annotation = `?fieldManager=kubectl-last-applied&fieldValidation=Strict {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"x"},"name":"c","namespace":"default"}}`
	const apply = `&fieldValidation=Strict&force=false {"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}`
	for manager, want := range map[string][]string{
		"kubectl": {"?fieldManager=kubectl" + apply, annotation, "?fieldManager=kubectl&fieldValidation=Strict [",
			"?fieldManager=kubectl" + apply},
		"me": {"?fieldManager=me" + apply, "?fieldManager=me&fieldValidation=Strict [",
			"?fieldManager=me" + apply},
	} {
		s := writetest.NewServer(t, before)
		args := []string{"apply", "-f", "-", "--server-side"}
		if manager != "kubectl" {
			args = append(args, "--field-manager="+manager)
		}
		if got, code := writetest.Run(t, newCommand, s.URL, configMap(`{"a":"1"}`),
			args...); got != "configmap/c serverside-applied\n" || code != 0 {
			t.Errorf("%s: code %d, got %q", manager, code, got)
		}
		log := s.Log()
		if len(log) != len(want) {
			t.Fatalf("%s: %s", manager, strings.Join(log, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(log[i], "PATCH "+live+want[i]) {
				t.Errorf("%s: request %d is %s\nwant %s", manager, i, log[i], want[i])
			}
		}
		if o := s.Object(live); !strings.Contains(o, `"manager":"`+manager+`","operation":"Apply"`) ||
			strings.Contains(o, "client-side") {
			t.Errorf("%s: %s", manager, o)
		}
	}
}
