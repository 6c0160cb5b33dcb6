package version

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"bonsai/api/kubeversion"
	"bonsai/pkg/kubectl/write/writetest"
)

func peer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		fmt.Fprint(w, `{"major":"1","minor":"36","gitVersion":"v1.36.1","platform":"linux/arm64"}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestText(t *testing.T) {
	t.Parallel()
	at := peer(t)
	for _, c := range []struct {
		at, args, want string
		code           int
	}{
		{at, "version", "Client Version: " + kubeversion.Release + "\nKustomize Version: v5.8.1\nServer Version: v1.36.1\n", 0},
		{"", "version --client", "Client Version: " + kubeversion.Release + "\nKustomize Version: v5.8.1\n", 0},
		{at, "version x", "error: extra arguments: [x]\n", 1},
		{at, "version -o xml", "error: --output must be 'yaml' or 'json'\n", 1},
	} {
		if got, code := writetest.Run(t, NewCommand, c.at, "", strings.Fields(c.args)...); got != c.want ||
			code != c.code {
			t.Errorf("%s: code %d, %q, want %q", c.args, code, got, c.want)
		}
	}
	got, code := writetest.Run(t, NewCommand, "", "", "version")
	if code != 1 || !strings.HasPrefix(got, "Client Version: "+kubeversion.Release+"\nKustomize Version: v5.8.1\n") ||
		!strings.Contains(got, "refused") {
		t.Errorf("without a server: code %d, %q, want the client's version and why there is no other", code, got)
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	at := peer(t)
	for _, c := range []struct {
		args   string
		read   func([]byte, any) error
		server string
	}{
		{"version -o json", json.Unmarshal, "v1.36.1"},
		{"version -o yaml", func(b []byte, v any) error { return yaml.Unmarshal(b, v) }, "v1.36.1"},
		{"version -o json --client", json.Unmarshal, ""},
	} {
		got, code := writetest.Run(t, NewCommand, at, "", strings.Fields(c.args)...)
		var v versions
		if err := c.read([]byte(got), &v); err != nil || code != 0 {
			t.Errorf("%s: code %d, %v, %s", c.args, code, err, got)
			continue
		}
		if v.ClientVersion.GitVersion != kubeversion.Release || v.ClientVersion.Major != "1" ||
			v.ClientVersion.Minor != kubeversion.Minor ||
			!strings.Contains(v.ClientVersion.Platform, "/") {
			t.Errorf("%s: client %+v", c.args, v.ClientVersion)
		}
		if (v.ServerVersion == nil) != (c.server == "") ||
			v.ServerVersion != nil && v.ServerVersion.GitVersion != c.server {
			t.Errorf("%s: server %+v", c.args, v.ServerVersion)
		}
	}
	if info := client("dev"); info.GitVersion != "dev" || info.Major != "" || info.Minor != "" {
		t.Errorf("a version without numbers: %+v", info)
	}
}
