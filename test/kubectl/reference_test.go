// Package kubectl compares our kubectl with Kubernetes' own.
//
// testdata/tables holds invocations, good and bad; testdata/reference what kubectl v1.37.2 answered to them in front of
// a kube-apiserver v1.37.2, testdata/ours what we answer instead, and under which heading of docs/kubectl.md it is
// explained. A new command changes the lists of commands in several tables: accept the differences of all.
package kubectl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"bonsai/api/kubeversion"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/kubectl"
	"bonsai/pkg/kubectl/cli"
)

var (
	reference = flag.String("kubectl", "", "run this kubectl instead of ours")
	record    = flag.Bool("record", false, "write what is answered as the reference")
	accept    = flag.Bool("accept", false,
		"write where our answers differ from the reference, with a reason to replace in the line \"# \" of each new one")
	only = flag.String("table", "", "run this table alone")
)

// toReplace is the reason of a difference that -accept wrote. No heading is called so: the test fails until somebody
// replaces it.
const toReplace = "REPLACE by a heading of docs/kubectl.md"

// patience is how long an invocation may take.
const patience = 20 * time.Second

// TestReference holds our answers against those of Kubernetes' kubectl. Record the reference again with
//
//	BONSAI_TEST_APISERVER=…/kube-apiserver go test ./test/kubectl -args -record -kubectl …/kubectl
func TestReference(t *testing.T) {
	klog.EnableContextualLogging(false) // as cmd/kubectl does
	cluster := controllertest.Start(t)
	client, err := kubernetes.NewForConfig(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	explained, tables := headings(t), readTables(t, "tables")
	testdata, err := filepath.Abs("testdata") // the tables change the directory
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, one := range tables {
		if *only != "" && one.name != *only {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one.name}}
			if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			r := prepare(t, one, cluster.Admin.Host, cluster.Admin.BearerToken)
			answers := map[string]entry{}
			for _, v := range one.invocations {
				answers[v.line] = entry{text: r.run(t, v).String()}
			}
			count += len(answers)
			if *record {
				writeAnswers(t, filepath.Join(testdata, "reference", one.name+".txt"), one, answers)
				return
			}
			compare(t, one, answers, testdata, explained)
		})
	}
	t.Logf("%d invocations", count)
}

// compare holds answers against the reference and against the differences that are known.
func compare(t *testing.T, one table, answers map[string]entry, testdata string, explained map[string]bool) {
	wanted := readAnswers(t, filepath.Join(testdata, "reference", one.name+".txt"))
	path := filepath.Join(testdata, "ours", one.name+".txt")
	toAccept := fmt.Sprintf("If ours is right, run go test ./test/kubectl -args -accept -table %s, "+
		"then replace the reason in test/kubectl/testdata/ours/%s.txt.", one.name, one.name)
	known := readAnswers(t, path)
	differing := map[string]entry{}
	for _, v := range one.invocations {
		want, recorded := wanted[v.line]
		got, ours := answers[v.line], known[v.line]
		if !recorded && ours.text == "" && !*accept { // a command of our own has its answer in ours
			t.Errorf("%s\nis not in test/kubectl/testdata/reference/%s.txt. %s", v.line, one.name, toAccept)
			continue
		}
		if got.text == want.text {
			if ours.text != "" && !*accept {
				t.Errorf("%s\nis answered as the reference is: remove it from %s", v.line, path)
			}
			continue
		}
		differing[v.line] = entry{reason: cmp.Or(ours.reason, toReplace), text: got.text}
		switch {
		case *accept:
		case got.text != ours.text:
			t.Errorf("%s\nis answered otherwise (- recorded, + now):\n%s%s", v.line,
				gocmp.Diff(cmp.Or(ours.text, want.text), got.text), toAccept)
		case !explained[ours.reason]:
			t.Errorf("%s\nhas the reason %q in test/kubectl/testdata/ours/%s.txt, and docs/kubectl.md has no such heading",
				v.line, ours.reason, one.name)
		}
	}
	for line := range known {
		if _, ok := answers[line]; !ok && !*accept {
			t.Errorf("%s has an answer to %q, which is not asked", path, line)
		}
	}
	if *accept {
		writeAnswers(t, path, one, differing)
	}
}

// headings are those of docs/kubectl.md.
func headings(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if after, ok := strings.CutPrefix(line, "### "); ok {
			out[strings.TrimSpace(after)] = true
		}
	}
	return out
}

// runner runs the invocations of one table.
type runner struct{ dir, home string }

// prepare makes the directory of a table, with its files and a kubeconfig.
func prepare(t *testing.T, one table, host, token string) *runner {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	r := &runner{dir: t.TempDir(), home: home}
	t.Chdir(r.dir)
	for _, f := range one.files {
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(home, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],`+
		`"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u","namespace":%q}}],"current-context":"c"}`, host, token, one.name)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": home, "KUBECONFIG": config, "TZ": "UTC", "LANG": "C", "LC_ALL": "C",
		"PATH": r.dir + "/path:/usr/bin:/bin", "KUBECACHEDIR": "",
		"TMPDIR": os.TempDir(), "KUBE_EDITOR": "false",
	} {
		t.Setenv(name, value)
	}
	return r
}

func (r *runner) run(t *testing.T, v invocation) answer {
	t.Helper()
	var in []byte
	if v.stdin != "" {
		var err error
		if in, err = os.ReadFile(v.stdin); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	errOut := filepath.Join(t.TempDir(), "stderr")
	said, err := os.Create(errOut)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	var code int
	if *reference != "" {
		code = program(t, ctx, v, in, &out, said)
	} else {
		code = ours(ctx, v, in, &out, said)
	}
	errors, err := os.ReadFile(errOut)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Errorf("%s\ndoes not end", v.line)
	}
	return answer{r.normal(out.String()), r.normal(string(errors)), code}
}

// program runs the kubectl of the flag.
func program(t *testing.T, ctx context.Context, v invocation, in []byte, out io.Writer, errOut *os.File) int {
	cmd := exec.CommandContext(ctx, *reference, v.args...)
	cmd.Env = append(os.Environ(), v.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), out, errOut
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// ours runs our kubectl in this process, whose error stream the libraries write to that log.
func ours(ctx context.Context, v invocation, in []byte, out io.Writer, errOut *os.File) int {
	defer func(before *os.File) { os.Stderr = before }(os.Stderr)
	os.Stderr = errOut
	for _, pair := range v.env {
		name, value, _ := strings.Cut(pair, "=")
		old, had := os.LookupEnv(name)
		_ = os.Setenv(name, value)
		defer func() {
			if had {
				_ = os.Setenv(name, old)
			} else {
				_ = os.Unsetenv(name)
			}
		}()
	}
	return kubectl.Main(ctx, kubeversion.Git, v.args, cli.IOStreams{In: bytes.NewReader(in), Out: out, ErrOut: errOut})
}
