package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The secrets that pass through kubectl; none is part of another.
const (
	bearer   = "bearer-of-the-user"
	password = "password-of-the-user"
	granted  = "token-that-is-made"
	content  = "content-of-the-secret"
	fromExec = "token-of-the-plug-in"
)

// secretServer has one Secret in all the ways it is read, and makes tokens.
func secretServer(t *testing.T) string {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString([]byte(content))
	secret := `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"default","annotations":{"a":"` +
		"\u009b" + `1m","kubectl.kubernetes.io/last-applied-configuration":"{\"stringData\":{\"k\":\"` + content +
		`\"}}"}},"data":{"k":"` + encoded + `"},"type":"Opaque"}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session="+bearer)
		answer := secret
		switch r.URL.Path {
		case "/api":
			answer = `{"kind":"APIVersions","versions":["v1"]}`
		case "/apis":
			answer = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
		case "/api/v1":
			answer = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":["create","get","list","patch"]},
				{"name":"serviceaccounts","singularName":"serviceaccount","namespaced":true,"kind":"ServiceAccount","verbs":["get"]}]}`
		case "/api/v1/namespaces/default/secrets":
			if r.Method == http.MethodGet {
				answer = `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` +
					secret + `]}`
			}
		case "/api/v1/namespaces/default/serviceaccounts/sa/token":
			answer = `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":["a"]},"status":{"token":"` + granted + `","expirationTimestamp":"2026-01-01T00:00:00Z"}}`
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestLogKeepsSecrets: whatever -v logs has no secret of the user's or of the cluster's, and no control character.
func TestLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	url := secretServer(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plugin := write("plug-in",
		"#!/bin/sh\necho '"+`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+fromExec+`"}}'`+"\n", 0o700)
	broken := write("broken",
		"#!/bin/sh\necho '"+`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+fromExec+"'\n", 0o700)
	user := func(name, how string) string {
		return write(name, fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{%s}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"current-context":"c"}`, url, how), 0o600)
	}
	runs := func(command string) string {
		return fmt.Sprintf(`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":%q,"interactiveMode":"Never"}`, command)
	}
	manifest := write("secret.json",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"`+content+`"}}`, 0o600)
	named := strings.Replace(url, "http://", "http://ann:"+password+"@", 1)
	for _, kubeconfig := range []string{user("token", `"token":"`+bearer+`"`),
		user("basic", `"username":"ann","password":"`+password+`"`), user("exec", runs(plugin)),
		user("broken-exec", runs(broken))} {
		for _, args := range []string{
			"get secret s -o name", "get secrets -o name", "describe secret s",
			"create --validate=false secret generic s --from-literal=k=" + content,
			"apply --validate=false -f " + manifest,
			"apply --validate=false --server-side -f " + manifest,
			"patch secret s -p {\"stringData\":{\"k\":\"" + content + "\"}}",
			"patch secret s --type=json -p [{\"op\":\"add\",\"path\":\"/stringData/k\",\"value\":\"" + content + "\"}]",
			"create token sa", "get secret s -o name --server " + named, "config view",
		} {
			t.Run(filepath.Base(kubeconfig)+" "+args, func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), os.Args[0],
					append(strings.Fields(args), "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "-v=10")...)
				cmd.Env = append(os.Environ(), "KUBECTL_UNDER_TEST=1")
				var said strings.Builder
				cmd.Stderr = &said
				_ = cmd.Run() // it may fail, as with the plug-in that is broken
				if !strings.Contains(said.String(), "Config loaded from file") {
					t.Fatalf("nothing was logged: %q", said.String())
				}
				if at := strings.IndexFunc(said.String(), func(r rune) bool {
					return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
				}); at >= 0 {
					t.Errorf("a control character in the log: …%q", said.String()[max(0, at-50):])
				}
				for _, secret := range []string{bearer, password, granted, content, fromExec} {
					encoded := strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "=")
					if at := max(strings.Index(said.String(), secret), strings.Index(said.String(), encoded)); at >= 0 {
						t.Errorf("the log has %q: …%s", secret, said.String()[max(0, at-200):at+len(secret)])
					}
				}
			})
		}
	}
}
