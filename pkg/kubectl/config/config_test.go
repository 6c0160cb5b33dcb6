package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://1", certificate-authority: ca.crt}}]
users: [{name: u, user: {token: secret, client-key-data: c2VjcmV0}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: other, context: {cluster: c, user: u}}]
current-context: x
`

// run runs "kubectl config args" on a kubeconfig of its own, and returns the output and the file afterwards.
func run(t *testing.T, args ...string) (out, file string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	buffer := &bytes.Buffer{}
	streams := cli.IOStreams{In: strings.NewReader(""), Out: buffer, ErrOut: &bytes.Buffer{}}
	f := cli.NewFactory("v0", streams)
	cmd := NewCommand(f, streams)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(buffer)
	f.AddFlags(cmd.PersistentFlags())
	cmd.SetArgs(append([]string{"--kubeconfig", path}, args...))
	err = cmd.Execute()
	data, _ := os.ReadFile(path)
	return buffer.String(), string(data), err
}

func TestView(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args          []string
		with, without string
	}{
		{[]string{"view"}, "token: REDACTED", "secret"},
		{[]string{"view"}, "certificate-authority: ca.crt", "/ca.crt"},
		{[]string{"view"}, "client-key-data: DATA+OMITTED", "c2VjcmV0"},
		{[]string{"view", "--raw"}, "client-key-data: c2VjcmV0", "OMITTED"},
		{[]string{"view", "--raw"}, "token: secret", "REDACTED"},
		{[]string{"view", "--minify", "--context=other"}, "name: other", "name: x"},
		{[]string{"view", "-o", "jsonpath={.users[0].name}"}, "u", "token"},
	} {
		out, file, err := run(t, c.args...)
		if err != nil || !strings.Contains(out, c.with) || strings.Contains(out, c.without) || file != kubeconfig {
			t.Errorf("%v: %v\n%s", c.args, err, out)
		}
	}
}

// TestViewOfAMissingFile: nothing is configured yet, which is no error unless one file alone was asked for.
func TestViewOfAMissingFile(t *testing.T) {
	t.Parallel()
	missing := "--kubeconfig=" + filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		args []string
		out  string
		err  string // the end of it
	}{
		{[]string{"view", missing},
			"apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: \"\"\nkind: Config\nusers: null\n", ""},
		{[]string{"view", missing, "--minify"}, "", "current-context must exist in order to minify"},
		{[]string{"view", missing, "--merge=false"}, "", "no such file or directory"},
	} {
		out, _, err := run(t, c.args...)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if out != c.out || !strings.HasSuffix(said, c.err) || (c.err == "") != (err == nil) {
			t.Errorf("config %v: %q, %v; want %q, %q", c.args, out, err, c.out, c.err)
		}
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, out, with, without string }{
		{"use-context other", "Switched to context \"other\".\n", "current-context: other", "current-context: x"},
		{"rename-context x z", "Context \"x\" renamed to \"z\".\n", "current-context: z", "name: x"},
		{"set-context --current --namespace=dev", "Context \"x\" modified.\n", "namespace: dev", "namespace: x"},
		{"set-cluster c --insecure-skip-tls-verify=true", "Cluster \"c\" set.\n", "insecure-skip-tls-verify: true",
			"certificate-authority"},
		{"set-credentials u --username=joe --password=p", "User \"u\" set.\n", "username: joe", "secret"},
		{"set-credentials u --exec-command=get --exec-env=A=B", "User \"u\" set.\n", "command: get", "nothing"},
		{"delete-user u", "deleted user u from ", "users: null", "secret"},
		{"set clusters.c.server https://2", "Property \"clusters.c.server\" set.\n", "server: https://2", "https://1"},
	} {
		out, file, err := run(t, strings.Fields(c.args)...)
		if err != nil || !strings.HasPrefix(out, c.out) || !strings.Contains(file, c.with) ||
			strings.Contains(file, c.without) {
			t.Errorf("%s: %v\n%s\n%s", c.args, err, out, file)
		}
	}
	for _, args := range []string{"use-context nope", "rename-context x other", "set-context", "set-cluster",
		"set-credentials u --token=a --username=b", "delete-cluster nope"} {
		if _, file, err := run(t, strings.Fields(args)...); err == nil || file != kubeconfig {
			t.Errorf("%s was accepted", args)
		}
	}
}
