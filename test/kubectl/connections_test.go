package kubectl

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// build makes the program, as it is used: without the race detector, with which one starts ten times as slowly.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "bonsai/cmd/kubectl")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestConnections holds how our kubectl finds a server, proves who it is and gets there against how Kubernetes' does:
// what it says, and what a server and proxies on loopback see of it. The tables are testdata/connections; in them
// @NAME@ stands for what differs from run to run. An answer has a line "> " for each thing that was seen. Record again
// with
//
//	go test ./test/kubectl -run TestConnections -args -record -kubectl …/kubectl
func TestConnections(t *testing.T) {
	explained, tables := headings(t), readTables(t, "connections")
	program := *reference
	if program == "" {
		program = build(t)
	}
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tables {
		if *only != "" && *only != one.name {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			if one.name == "inpod" &&
				exec.CommandContext(t.Context(), "unshare", "--mount", "--user", "--map-root-user", "true").Run() !=
					nil {
				t.Skip("SKIPPED: a pod's files are laid in mounts of their own, which this user may not make")
			}
			f := newFront(t)
			named := append(f.names(), named{"KUBECTL", program})
			fill := strings.NewReplacer(pairs(named, func(name, value string) (string, string) {
				return "@" + name + "@", value
			})...)
			// longer values first: an address is a part of its URL
			values := strings.NewReplacer(pairs(named, func(name, value string) (string, string) {
				return value, "@" + name + "@"
			})...)
			// UIDs go before the values, for their random digits may be those of a port
			hide := func(text string) string { return values.Replace(uid.ReplaceAllString(text, "<uid>")) }
			for i := range one.files {
				one.files[i].Data = []byte(fill.Replace(string(one.files[i].Data)))
			}
			for name, data := range map[string][]byte{
				"ca.pem": f.ca.cert, "other.pem": f.other.cert, "client.pem": f.client.cert, "client.key": f.client.key,
				"expired.pem": f.expired.cert, "expired.key": f.expired.key,
			} {
				one.files = append(one.files, txtar.File{Name: name, Data: data})
			}
			r := prepare(t, one, f.plain.URL, "of-the-home")
			got := map[string]entry{}
			for _, v := range one.invocations {
				a := r.start(t, program, v, fill)
				for _, text := range []*string{&a.out, &a.errOut} {
					*text = once(r.normal(late.ReplaceAllString(hide(*text), "context deadline exceeded")))
				}
				seen := f.taken()
				for i := range seen {
					seen[i] = "> " + r.normal(hide(seen[i])) + "\n"
				}
				got[v.line] = entry{text: a.String() + strings.Join(seen, "")}
			}
			if *record {
				writeAnswers(t, filepath.Join(testdata, "reference", one.name+".txt"), one, got)
				return
			}
			compare(t, one, got, testdata, explained)
		})
	}
}

// once leaves out lines of a log that repeat the one before: how often client-go reads a certificate that is wrong
// depends on the time.
func once(text string) string {
	var out strings.Builder
	last := ""
	for line := range strings.Lines(text) {
		if line != last || !strings.Contains(line, "Loading client cert failed") {
			out.WriteString(line)
		}
		last = line
	}
	return out.String()
}

// late are the words of net/http for a deadline, which depend on who sees it first.
var late = regexp.MustCompile(
	`(context deadline exceeded|net/http: request canceled)( \(Client\.Timeout exceeded while awaiting headers\))?`)

// named is what an @NAME@ of a table stands for.
type named struct{ name, value string }

// names are those of the front, longer values first.
func (f *front) names() []named {
	port := func(raw string) string { u, _ := url.Parse(raw); return u.Port() }
	encode := base64.StdEncoding.EncodeToString
	return []named{
		{"FRESH", freshToken}, {"STALE", staleToken},
		{"CA64", encode(f.ca.cert)}, {"CERT64", encode(f.client.cert)}, {"KEY64", encode(f.client.key)},
		{"CERTLINE", strings.ReplaceAll(string(f.client.cert), "\n", `\n`)},
		{"KEYLINE", strings.ReplaceAll(string(f.client.key), "\n", `\n`)},
		{"SERVER", f.server.URL}, {"PLAIN", f.plain.URL}, {"REFUSING", f.refusing.URL}, {"PROXY", f.proxy.URL},
		{"SECURE", f.secure.URL},
		{"SOCKS", f.socks.Addr().String()},
		{"PORT", port(f.server.URL)}, {"PLAINPORT", port(f.plain.URL)}, {"PROXYPORT", port(f.proxy.URL)},
	}
}

func pairs(all []named, how func(name, value string) (string, string)) []string {
	var out []string
	for _, one := range all {
		a, b := how(one.name, one.value)
		out = append(out, a, b)
	}
	return out
}

// start runs one invocation as a process.
func (r *runner) start(t *testing.T, program string, v invocation, fill *strings.Replacer) answer {
	t.Helper()
	if v.shell {
		program = "sh"
	}
	args := make([]string, len(v.args))
	for i := range args {
		args[i] = fill.Replace(v.args[i])
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	for _, e := range v.env {
		cmd.Env = append(cmd.Env, fill.Replace(e))
	}
	if v.stdin != "" {
		in, err := os.Open(v.stdin)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd.Stdin = in
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	a := answer{out: out.String(), errOut: errOut.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		a.code = exit.ExitCode()
	} else if err != nil {
		t.Errorf("%s: %v", v.line, err)
	}
	return a
}
