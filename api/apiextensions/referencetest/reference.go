// Package referencetest records the answers of a real kube-apiserver in files, with which tests compare our functions.
package referencetest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Flags are those of a test that can record.
type Flags struct{ url, token *string }

// AddFlags declares -reference and -token.
func AddFlags() Flags {
	return Flags{
		url:   flag.String("reference", "", "URL of a real kube-apiserver whose answers are recorded"),
		token: flag.String("token", "tok", "bearer token for it, of an administrator"),
	}
}

// Server returns the real server; nil when the test is not to record.
func (f Flags) Server() *Server {
	if *f.url == "" {
		return nil
	}
	return &Server{url: *f.url, token: *f.token, client: &http.Client{Transport: &http.Transport{
		// a throw-away server on loopback, with a certificate of its own making
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}}
}

// Server is a real kube-apiserver.
type Server struct {
	url, token string
	client     *http.Client
}

// URL is where it is.
func (s *Server) URL() string { return s.url }

// Client asks as the administrator.
func (s *Server) Client() *http.Client { return &http.Client{Transport: administrator{s}} }

// administrator sends requests with the token.
type administrator struct{ *Server }

// RoundTrip implements http.RoundTripper.
func (a administrator) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.client.Transport.RoundTrip(r)
}

// Answer is what it said.
type Answer struct {
	Code     int                  `json:"code"`
	Reason   metav1.StatusReason  `json:"reason,omitempty"`
	Message  string               `json:"message,omitempty"`
	Causes   []metav1.StatusCause `json:"causes,omitempty"`
	Warnings []string             `json:"warnings,omitempty"`
	// Object is what was stored, without what the server itself sets.
	Object map[string]any `json:"object,omitempty"`
}

// Ask sends body, or nothing for nil.
func (s *Server) Ask(method, path string, body any) (Answer, error) {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return Answer{}, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, s.url+path, in)
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, err
	}
	out := Answer{Code: resp.StatusCode}
	for _, w := range resp.Header.Values("Warning") {
		if _, text, ok := strings.Cut(w, `"`); ok {
			out.Warnings = append(out.Warnings, strings.ReplaceAll(strings.TrimSuffix(text, `"`), `\"`, `"`))
		}
	}
	if resp.StatusCode >= 400 {
		var st metav1.Status
		if err := json.Unmarshal(raw, &st); err != nil { // the server knows no such path
			out.Message = string(raw)
			return out, nil
		}
		out.Reason, out.Message = st.Reason, st.Message
		if st.Details != nil {
			out.Causes = st.Details.Causes
			Sort(out.Causes)
		}
		return out, nil
	}
	return out, json.Unmarshal(raw, &out.Object)
}

// Sort brings causes into one order: the server's own is not always the same.
func Sort(causes []metav1.StatusCause) {
	slices.SortFunc(causes, func(a, b metav1.StatusCause) int {
		return strings.Compare(a.Field+"\x00"+string(a.Type)+"\x00"+a.Message,
			b.Field+"\x00"+string(b.Type)+"\x00"+b.Message)
	})
}

// Wait asks until done says so.
func (s *Server) Wait(path string, done func(Answer) bool) error {
	for range 10_000 {
		a, err := s.Ask(http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if done(a) {
			return nil
		}
	}
	return errors.New("waited in vain for " + path)
}

// Read reads a YAML file into v.
func Read(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Write writes v as YAML.
func Write(t *testing.T, file string, v any) {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}
