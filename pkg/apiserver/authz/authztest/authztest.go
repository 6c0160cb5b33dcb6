// Package authztest starts a kube-apiserver of Kubernetes, whose decisions tests record.
package authztest

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Server is a kube-apiserver that runs.
type Server struct {
	url    string
	client *http.Client
}

// port is where it listens, on loopback.
const port = "16459"

// Start starts the program on an etcd of the test's, with arguments that say who authorizes. The token "admin" is that
// of a member of system:masters, the token NAME-token that of each of users.
func Start(t *testing.T, program, etcd string, users []string, args ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	key, tokens := filepath.Join(dir, "sa.key"), "admin,admin,0,system:masters\n"
	if err := exec.CommandContext(t.Context(), "openssl", "genrsa", "-out", key, "2048").Run(); err != nil {
		t.Fatal(err)
	}
	for n, user := range users {
		tokens += fmt.Sprintf("%s-token,%s,%d\n", user, user, n+1)
	}
	file := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(file, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, append([]string{"--etcd-servers=" + etcd,
		"--etcd-prefix=/" + filepath.Base(t.TempDir()) + fmt.Sprint(time.Now().UnixNano()), "--cert-dir=" + dir,
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--token-auth-file=" + file}, args...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	trust := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // its own server
	s := &Server{url: "https://127.0.0.1:" + port,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}}
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			code, _, err := s.send(t, "admin", http.MethodGet, "/readyz", nil)
			return err == nil && code == http.StatusOK, nil
		}); err != nil {
		t.Fatalf("%s is not ready: %v", program, err)
	}
	return s
}

func (s *Server) send(t *testing.T, token, method, path string, body any) (int, []byte, error) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

func (s *Server) create(t *testing.T, token, resource string, obj any) {
	t.Helper()
	code, text, err := s.send(t, token, http.MethodPost, "/apis/authorization.k8s.io/v1/"+resource, obj)
	if err != nil || code != http.StatusCreated {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
}

// Review returns the server's answer to a question.
func (s *Server) Review(t *testing.T,
	spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	s.create(t, "admin", "subjectaccessreviews", review)
	return review.Status
}

// Rules returns what the server lists for one of the users.
func (s *Server) Rules(t *testing.T, user, namespace string) authorizationv1.SubjectRulesReviewStatus {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	s.create(t, user+"-token", "selfsubjectrulesreviews", review)
	return review.Status
}
