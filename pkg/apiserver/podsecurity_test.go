package apiserver_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/namespacelifecycle"
	"bonsai/pkg/apiserver/admission/podsecurity"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz/always"
)

var generatedPod = regexp.MustCompile(`gen-[a-z0-9]{5}`)

// TestPodSecurityReplay asks what a real kube-apiserver v1.37.2 was asked, one request after the other, and expects its
// codes, messages and warnings.
func TestPodSecurityReplay(t *testing.T) {
	t.Parallel()
	replayPodSecurity(t, "testdata/podsecurity.json", "")
}

// TestPodSecurityConfigured does so with defaults and exemptions.
func TestPodSecurityConfigured(t *testing.T) {
	t.Parallel()
	replayPodSecurity(t, "testdata/podsecurityconfigured.json", `
apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
defaults: {enforce: baseline, enforce-version: latest, audit: restricted, warn: restricted, warn-version: v1.30}
exemptions: {usernames: [alice], namespaces: [exempt, e0, e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11], runtimeClasses: [sandboxed]}`)
}

// replayPodSecurity holds a server to what was recorded in a file, with the configuration as of its own file, or none.
func replayPodSecurity(t *testing.T, file, configuration string) {
	t.Helper()
	var configured podsecurity.Configuration
	// of the real server, where alice may do what she asks for, and classes need not exist
	flags := []string{"--authorization-mode=AlwaysAllow", "--disable-admission-plugins=RuntimeClass"}
	if configuration != "" {
		var err error
		if configured, err = podsecurity.ReadConfiguration([]byte(configuration)); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"podsecurity.yaml": configuration, "admission.yaml": `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: PodSecurity, path: podsecurity.yaml}]`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		flags = append(flags, "--admission-control-config-file="+filepath.Join(dir, "admission.yaml"))
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		User                     string // admin by default
		Method, Path, Type, Body string
		Code                     int
		Message                  string
		Warnings                 []string
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	as := recordedServer(t, func(c *assemble.Config) {
		c.Parts.Authorizer = always.Allow{}
		namespaces := late(c, "", "namespaces")
		c.Parts.Admission = admission.NewChain(namespacelifecycle.New(namespaces),
			podsecurity.New(podsecurity.Config{Namespaces: namespaces, Pods: late(c, "", "pods"),
				Configuration: configured, Now: time.Now}))
		withBehaviours(t, c)
	}, flags...)
	for _, c := range all {
		code, header, body := as(cmp.Or(c.User, "admin")).call(t, c.Method, c.Path, c.Body, c.Type)
		var status struct{ Kind, Message string }
		if err := json.Unmarshal([]byte(body), &status); err != nil {
			t.Fatalf("%s %s: %v", c.Method, c.Path, err)
		}
		message := ""
		if status.Kind == "Status" {
			message = generatedPod.ReplaceAllString(status.Message, "gen-*")
		}
		if code != c.Code || message != c.Message || !slices.Equal(header["Warning"], c.Warnings) {
			t.Errorf("%s %s %s:\n got %d %s %q\nwant %d %s %q", c.Method, c.Path, c.Body, code, message,
				header["Warning"], c.Code, c.Message, c.Warnings)
		}
	}
}
