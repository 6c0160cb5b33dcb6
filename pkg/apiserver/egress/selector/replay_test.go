package selector

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
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

// recorded is one file, and what a kube-apiserver v1.36.3 said about it before it ended; "": it started. In both, FILE,
// CA, CERT and KEY stand for the paths of the file and of those that it names.
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

// paths are the files of a recorded one, in dir.
type paths struct {
	in, out     *strings.Replacer
	certificate tls.Certificate
}

func newPaths(t *testing.T, dir string) paths {
	t.Helper()
	made := newCertificate(t, "proxy")
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})
	var in, out []string
	for name, text := range map[string][]byte{"CA": certificate, "CERT": certificate,
		"KEY": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		path := filepath.Join(dir, strings.ToLower(name)+".pem")
		write(t, path, text)
		in, out = append(in, ": "+name+"\n", ": "+path+"\n"), append(out, path, name)
	}
	return paths{strings.NewReplacer(in...),
		strings.NewReplacer(append(out, filepath.Join(dir, "egress.yaml"), "FILE")...), made}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReplay: the answers to good and bad files are those of a real kube-apiserver, word by word.
func TestReplay(t *testing.T) {
	t.Parallel()
	all := files(t)
	dir := t.TempDir()
	p := newPaths(t, dir)
	path := filepath.Join(dir, "egress.yaml")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		write(t, path, []byte(p.in.Replace(f.File)))
		want := f.Answer
		if f.Why != "" {
			want = f.Ours
		}
		got := ""
		if _, err := Open(path, Options{}); err != nil {
			got = p.out.Replace(err.Error())
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestRecord writes the answers of the program into the file that TestReplay reads: go test
// ./pkg/apiserver/egress/selector -run TestRecord -timeout 1h -args -reference PATH.
func TestRecord(t *testing.T) {
	if *program == "" {
		t.Skip("records from a kube-apiserver of Kubernetes (-reference)")
	}
	dir := t.TempDir()
	if err := exec.CommandContext(t.Context(), "openssl", "genrsa", "-out", filepath.Join(dir, "sa.key"),
		"2048").Run(); err != nil {
		t.Fatal(err)
	}
	p := newPaths(t, dir)
	path := filepath.Join(dir, "egress.yaml")
	all := files(t)
	for name, f := range all {
		write(t, path, []byte(p.in.Replace(f.File)))
		f.Answer = p.out.Replace(answer(t, dir, path))
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
		"--bind-address=127.0.0.1", "--secure-port=16943",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--authorization-mode=RBAC",
		"--egress-selector-config-file="+file)
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
	return "the program ended without a word"
}
