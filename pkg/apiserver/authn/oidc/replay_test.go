package oidc

import (
	"bufio"
	"context"
	"flag"
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

// program is a real kube-apiserver of Kubernetes.
var program = flag.String("reference", "", "a kube-apiserver of Kubernetes, whose answers TestRecord records")

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

// TestReplay: the answers to good and bad files are those of a real kube-apiserver, word by word.
func TestReplay(t *testing.T) {
	t.Parallel()
	all := files(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		path := filepath.Join(t.TempDir(), "authn.yaml")
		write(t, path, []byte(f.File))
		want := f.Answer
		if f.Why != "" {
			want = f.Ours
		}
		got := ""
		if _, err := Open(path, Options{AccountIssuers: []string{"https://kubernetes.default.svc"}}); err != nil {
			got = strings.ReplaceAll(err.Error(), path, "FILE")
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestRecord writes the answers of the program into the file that TestReplay reads: go test ./pkg/apiserver/authn/oidc
// -run TestRecord -args -reference PATH.
func TestRecord(t *testing.T) {
	if *program == "" {
		t.Skip("records from a kube-apiserver of Kubernetes (-reference)")
	}
	dir := t.TempDir()
	if err := exec.CommandContext(t.Context(), "openssl", "genrsa", "-out", filepath.Join(dir, "sa.key"),
		"2048").Run(); err != nil {
		t.Fatal(err)
	}
	all := files(t)
	for name, f := range all {
		path := filepath.Join(dir, "authn.yaml")
		write(t, path, []byte(f.File))
		f.Answer = strings.ReplaceAll(answer(t, dir, path), path, "FILE")
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

// answer starts the program, which gets no etcd, and returns the error with which it ends before it waits for one.
func answer(t *testing.T, dir, file string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	key := filepath.Join(dir, "sa.key")
	c := exec.CommandContext(ctx, *program, "--etcd-servers=http://127.0.0.1:1", "--cert-dir="+dir,
		"--bind-address=127.0.0.1", "--secure-port=16443",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--authorization-mode=RBAC",
		"--authentication-config="+file)
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Wait() }()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, said, ok := strings.Cut(lines.Text(), `"command failed" err=`)
		if !ok {
			continue
		}
		if said == "<" { // a text of several lines, each behind a tab
			said = ""
			for lines.Scan() && lines.Text() != " >" {
				said += strings.TrimPrefix(lines.Text(), "\t") + "\n"
			}
			said = strings.TrimSuffix(said, "\n")
		} else if said, err = strconv.Unquote(said); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(said, "error creating storage factory") { // it took the file, and has no etcd
			return ""
		}
		return said
	}
	t.Fatalf("%s: the program said nothing", file)
	return ""
}
