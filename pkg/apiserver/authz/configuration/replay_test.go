package configuration

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// program is a real kube-apiserver of Kubernetes, and etcd one for it.
var (
	program = flag.String("reference", "", "a kube-apiserver of Kubernetes, whose answers TestRecord records")
	etcd    = flag.String("etcd", "", "the URL of an etcd for the kube-apiserver of -reference")
)

const filesOf = "testdata/files.yaml"

// recorded is one file, and what a kube-apiserver v1.36.3 said about it before it ended; "": it started.
type recorded struct {
	File   string `json:"file"`
	Answer string `json:"answer"`
	// Ours is our answer where it is another, and Why says the reason.
	Ours string `json:"ours,omitempty"`
	Why  string `json:"why,omitempty"`
}

func files(t *testing.T) map[string]recorded {
	t.Helper()
	text, err := os.ReadFile(filesOf)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]recorded{}
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// named are the files that configurations name, in a directory, by what stands for them in the recorded texts. No name
// is a part of one behind it.
func named(t *testing.T, dir string) (to, from *strings.Replacer) {
	t.Helper()
	const good = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: w}}]\n" +
		"clusters: [{name: w, cluster: {server: 'https://127.0.0.1:1/review'}}]\n"
	var there, back []string
	for _, f := range []struct{ name, text string }{{"NOKUBECONFIG", "hello: [\n"}, {"EMPTYKUBECONFIG", ""},
		{"KUBECONFIG", good}, {"LINK", good}, {"FILE", ""}} {
		path := filepath.Join(dir, "file-of-"+f.name)
		if err := os.WriteFile(path, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		there, back = append(there, f.name, path), append(back, path, f.name)
	}
	return strings.NewReplacer(there...), strings.NewReplacer(back...)
}

// TestReplay: the answers to good and bad files are those of a real kube-apiserver, word by word.
func TestReplay(t *testing.T) {
	t.Parallel()
	all, dir := files(t), t.TempDir()
	to, from := named(t, dir)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		path := to.Replace("FILE")
		if err := os.WriteFile(path, []byte(to.Replace(f.File)), 0o600); err != nil {
			t.Fatal(err)
		}
		want := f.Answer
		if f.Why != "" {
			want = f.Ours
		}
		got := ""
		if _, err := Open(path, Options{Build: func([]Mode) (Built, error) { return nil, nil },
			Log: slog.New(slog.DiscardHandler)}); err != nil {
			got = from.Replace(err.Error())
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestRecord writes the answers of the program into the file that TestReplay reads: go test
// ./pkg/apiserver/authz/configuration -run TestRecord -args -reference PATH -etcd URL.
func TestRecord(t *testing.T) {
	if *program == "" {
		t.Skip("records from a kube-apiserver of Kubernetes (-reference)")
	}
	dir := t.TempDir()
	if err := exec.CommandContext(t.Context(), "openssl", "genrsa", "-out", filepath.Join(dir, "sa.key"),
		"2048").Run(); err != nil {
		t.Fatal(err)
	}
	to, from := named(t, dir)
	all := files(t)
	for name, f := range all {
		path := to.Replace("FILE")
		if err := os.WriteFile(path, []byte(to.Replace(f.File)), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := answer(t, dir, path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Answer = from.Replace(said)
		all[name] = f
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filesOf, text, 0o644); err != nil { //nolint:gosec // no secret
		t.Fatal(err)
	}
}

// answer starts the program and returns the error with which it ends before it makes its admission plug-ins.
func answer(t *testing.T, dir, file string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	key := filepath.Join(dir, "sa.key")
	c := exec.CommandContext(ctx, *program, "--etcd-servers="+*etcd, "--cert-dir="+dir,
		"--bind-address=127.0.0.1", "--secure-port=16457", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--authorization-config="+file)
	out, err := c.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "mutating admission controller") { // it has its authorizers
			return "", nil
		}
		_, said, ok := strings.Cut(lines.Text(), `"command failed" err=`)
		if !ok {
			continue
		}
		if said == "<" { // a text of several lines, each behind a tab
			said = ""
			for lines.Scan() && lines.Text() != " >" {
				said += strings.TrimPrefix(lines.Text(), "\t") + "\n"
			}
			return strings.TrimSuffix(said, "\n"), nil
		}
		return strconv.Unquote(said)
	}
	return "", errors.New("the program said nothing")
}
