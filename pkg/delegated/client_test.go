package delegated

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// TestClient: the paths it asks, in protobuf, and answers read from JSON.
func TestClient(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer map[string]any
		switch r.Method + " " + r.URL.Path {
		case "POST /apis/authentication.k8s.io/v1/tokenreviews":
			answer = map[string]any{"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
				"status": map[string]any{"authenticated": true}}
		case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
			answer = map[string]any{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
				"status": map[string]any{"allowed": true}}
		default:
			w.WriteHeader(http.StatusForbidden)
		}
		if c := r.Header.Get("Content-Type"); r.Method == http.MethodPost &&
			c != "application/vnd.kubernetes.protobuf" {
			t.Errorf("sent %s", c)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.ReviewToken(t.Context(),
		&authnv1.TokenReview{Spec: authnv1.TokenReviewSpec{Token: "t"}}); err != nil || !r.Status.Authenticated {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := c.ReviewAccess(t.Context(), &authzv1.SubjectAccessReview{}); err != nil || !r.Status.Allowed {
		t.Errorf("%v, %v", r, err)
	}
}
