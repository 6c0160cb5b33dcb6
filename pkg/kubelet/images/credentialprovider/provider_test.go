package credentialprovider

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// accounts is an API server with an account of every name, annotated with its own name; tokens count up.
type accounts struct{ tokens int }

func (a *accounts) ServiceAccount(_ context.Context, ns, name string) (*corev1.ServiceAccount, error) {
	return &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid-" + name),
			Annotations: map[string]string{"example.com/role": name, "secret": "x"}}}, nil
}

func (a *accounts) CreateToken(_ context.Context, _, _ string, r *authnv1.TokenRequest) (*authnv1.TokenRequest, error) {
	a.tokens++
	if r.Spec.Audiences[0] != "aud" || r.Spec.BoundObjectRef == nil || r.Spec.BoundObjectRef.Kind != "Pod" ||
		r.Spec.BoundObjectRef.UID == "" {
		return nil, fmt.Errorf("asked for %+v", r.Spec)
	}
	r.Status = authnv1.TokenRequestStatus{Token: fmt.Sprintf("token%d", a.tokens),
		ExpirationTimestamp: metav1.NewTime(time.Unix(1000+3600, 0))}
	return r, nil
}

// world is a directory with one program, which notes each request in the file requests.
type world struct {
	*Providers
	t        *testing.T
	dir      string
	now      time.Time
	accounts accounts
}

// start makes a provider "p" whose program runs script after it has noted the request; config is added to its
// configuration.
func start(t *testing.T, script, config string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), now: time.Unix(1000, 0)}
	w.write("p", "#!/bin/sh\ncat >> "+filepath.Join(w.dir, "requests")+"; echo >> "+filepath.Join(w.dir, "requests")+
		"\n"+script)
	w.write("config.yaml", `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: p
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example", "reg.example:5000/team"]
  defaultCacheDuration: 1m
  args: [one]
  env: [{name: SAY, value: hello}]
`+config)
	list, err := ReadConfig(filepath.Join(w.dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.Providers, err = New(Config{Providers: list, BinDir: w.dir, Accounts: &w.accounts, Now: func() time.Time {
		return w.now
	}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	// No program is started meanwhile, as what it inherits of the open file would keep it from being executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// got are the passwords for an image, with the account that they are of.
func (w *world) got(pod, account, image string) string {
	w.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: pod, UID: types.UID(pod)},
		Spec: corev1.PodSpec{ServiceAccountName: account}}
	var out []string
	for _, c := range w.Credentials(w.t.Context(), p, image) {
		text := c.Auth.Password
		if c.Account != nil {
			text += "@" + c.Account.UID
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func (w *world) requests() []string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "requests"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// answer is a program's answer with one credential for reg.example and one for all of example.
func answer(cache, duration string) string {
	return `echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","cacheKeyType":"` + cache + `",` + duration +
		`"auth":{"*.example":{"username":"u","password":"all"},"reg.example":{"username":"u","password":"'$1-$SAY'"},"other.example":{"username":"u","password":"none"}}}'`
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		images       []string
		want         string
		asked        int // for each image, and each again
	}{
		{"by image", answer("Image", ""),
			[]string{"reg.example/a:1",
				"reg.example/a@sha256:0123456789012345678901234567890123456789012345678901234567890123",
				"reg.example/b"}, "one-hello all", 2},
		{"by registry", answer("Registry", ""), []string{"reg.example/a", "reg.example/b", "x.example/b"}, "", 2},
		{"for all", answer("Global", ""), []string{"reg.example/a", "x.example/b"}, "", 1},
		{"not kept", answer("Image", `"cacheDuration":"0s",`), []string{"reg.example/a"}, "one-hello all", 2},
		{"not for it", answer("Image", ""), []string{"busybox", "reg.example:5000/other", "a.reg.example/x"}, "", 0},
		{"for a path", answer("Image", ""), []string{"reg.example:5000/team/x"}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, c.script, "")
			for range 2 {
				for _, image := range c.images {
					if got := w.got("p", "", image); c.want != "" && got != c.want {
						t.Errorf("%s: %s", image, got)
					}
				}
			}
			if got := w.requests(); len(got) != c.asked {
				t.Errorf("asked %v", got)
			}
		})
	}
}

func TestAnswersEnd(t *testing.T) {
	t.Parallel()
	w := start(t, answer("Image", ""), "")
	w.got("p", "", "reg.example/a")
	w.now = w.now.Add(time.Minute - time.Second)
	w.got("p", "", "reg.example/a")
	if got := w.requests(); len(got) != 1 ||
		got[0] != `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"reg.example/a"}` {
		t.Errorf("asked %v", got)
	}
	w.now = w.now.Add(time.Second)
	w.got("p", "", "reg.example/a")
	if got := w.requests(); len(got) != 2 {
		t.Errorf("asked %v", got)
	}
}

// TestBadPrograms: what a program does wrong costs its credentials, and no more; nothing of what it said is told.
func TestBadPrograms(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"fails":             "exit 1",
		"no JSON":           "echo '{geheim'",
		"another version":   "echo '{\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1beta1\",\"kind\":\"CredentialProviderResponse\",\"cacheKeyType\":\"Image\"}'",
		"no type of key":    answer("Pod", ""),
		"too much":          "yes geheim",
		"too much, at once": answer("Image", "") + "\nhead -c 2000000 /dev/zero",
		"leaves a child":    "sleep 1000 >/dev/null 2>&1 </dev/null &\nexit 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, script, "")
			var log strings.Builder
			w.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			if got := w.got("p", "", "reg.example/a"); got != "" {
				t.Errorf("got %s", got)
			}
			if strings.Contains(log.String(), "geheim") ||
				!strings.Contains(log.String(), "no credentials of a provider") {
				t.Errorf("said %s", &log)
			}
		})
	}
}

const withToken = `  tokenAttributes:
    serviceAccountTokenAudience: aud
    requireServiceAccount: true
    cacheType: %s
    requiredServiceAccountAnnotationKeys: [example.com/role]
    optionalServiceAccountAnnotationKeys: [example.com/none]
`

// TestTokens: the program is shown the pod's token and the annotations that it wants; answers are kept by account or by
// token, and never for others.
func TestTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cache string
		asked int
	}{{"ServiceAccount", 2}, {"Token", 3}} {
		w := start(t, answer("Registry", ""), fmt.Sprintf(withToken, c.cache))
		for range 2 {
			for _, p := range [][2]string{{"a", "sa"}, {"b", "sa"}, {"c", "sb"}} {
				if got := w.got(p[0], p[1], "reg.example/a"); got != "one-hello@uid-"+p[1]+" all@uid-"+p[1] {
					t.Errorf("%v: %s", p, got)
				}
			}
		}
		got := w.requests()
		if len(got) != c.asked ||
			!strings.Contains(got[0],
				`"serviceAccountToken":"token1","serviceAccountAnnotations":{"example.com/role":"sa"}`) {
			t.Errorf("%s: asked %v", c.cache, got)
		}
		if w.accounts.tokens != 3 {
			t.Errorf("%s: %d tokens", c.cache, w.accounts.tokens)
		}
		if got := w.got("static", "", "reg.example/a"); got != "" || len(w.requests()) != c.asked {
			t.Errorf("%s: without an account: %s", c.cache, got)
		}
	}
	w := start(t, answer("Image", ""),
		strings.ReplaceAll(fmt.Sprintf(withToken, "Token"), "example.com/role", "example.com/missing"))
	if got := w.got("a", "sa", "reg.example/a"); got != "" || len(w.requests()) > 0 {
		t.Errorf("without a required annotation: %s", got)
	}
}

// TestCacheIsBounded: users invent images.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	w := start(t, answer("Image", ""), "")
	w.got("p", "", "reg.example/a")
	p := w.list[0]
	for k, e := range p.known.known {
		for i := range 3 * maxKnown {
			k.of = fmt.Sprint(i)
			if len(p.known.known) < maxKnown {
				p.known.known[k] = e
			}
		}
		break
	}
	w.got("p", "", "reg.example/b")
	if n := len(p.known.known); n > maxKnown {
		t.Errorf("%d answers are kept", n)
	}
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n"
	good := "{name: p, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: [a], defaultCacheDuration: 1m"
	for text, want := range map[string]string{
		"kind: X\napiVersion: kubelet.config.k8s.io/v1\n": "CredentialProviderConfig",
		head + "nope: 1":       "nope",
		head + "providers: []": "required",
		head + "providers: [" + good + "}, " + good + "}]":       "unique",
		head + "providers: [{name: ../p}]":                       "'/'",
		head + "providers: [{name: ..}]":                         "'..'",
		head + "providers: [{name: p, apiVersion: v1}]":          "apiVersion",
		head + "providers: [{name: p}]":                          "matchImages",
		head + "providers: [{name: p, matchImages: ['[']}]":      "no pattern",
		head + "providers: [{name: p, matchImages: [a]}]":        "defaultCacheDuration",
		head + "providers: [" + good + ", tokenAttributes: {}}]": "serviceAccountTokenAudience",
		head + "providers: [" + good +
			", tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: [a]}}]": "must be true",
		head + "providers: [" + good +
			", tokenAttributes: {serviceAccountTokenAudience: a, cacheType: Token, requireServiceAccount: true, requiredServiceAccountAnnotationKeys: [a], optionalServiceAccountAnnotationKeys: [a]}}]": "once",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestConfigDirectory: the files of a directory are one configuration, in the order of their names; others in it are
// not read.
func TestConfigDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, name := range map[string]string{"b.yaml": "second", "a.json": "first", "c.txt": "none"} {
		text := `{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","providers":[{"name":"` +
			name +
			`","apiVersion":"credentialprovider.kubelet.k8s.io/v1","matchImages":["a"],"defaultCacheDuration":"0s"}]}`
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadConfig(dir)
	if err != nil || len(got) != 2 || got[0].Name != "first" || got[1].Name != "second" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := New(Config{Providers: got, BinDir: dir}); err == nil || !strings.Contains(err.Error(), "first") {
		t.Errorf("without its program: %v", err)
	}
}
