package write

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBindTriesAgain: a binding is sent again while the server cannot answer. A conflict after that is the pod's own
// binding, whose answer was lost, if the pod is on the node.
func TestBindTriesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int  // by binding, the last one for all that follow
		on      string // the pod's node
		sent    int
		want    func(error) bool
	}{
		"at once":             {[]int{201}, "", 1, nil},
		"unavailable":         {[]int{503, 201}, "", 2, nil},
		"broken, then busy":   {[]int{500, 429, 504, 201}, "", 4, nil},
		"broken for long":     {[]int{500}, "", bindTries, apierrors.IsInternalError},
		"the answer was lost": {[]int{500, 409}, "n", 2, nil},
		"on another node":     {[]int{500, 409}, "m", 2, apierrors.IsConflict},
		"taken":               {[]int{409}, "n", 1, apierrors.IsConflict},
		"forbidden":           {[]int{403}, "", 1, apierrors.IsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			sent := 0
			w := newWriter(t, func(rw http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				rw.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodGet {
					_ = json.NewEncoder(rw).Encode(map[string]any{"kind": "Pod", "apiVersion": "v1",
						"metadata": map[string]string{"name": "p", "uid": "u"},
						"spec":     map[string]string{"nodeName": c.on}})
					return
				}
				code := c.answers[min(sent, len(c.answers)-1)]
				sent++
				rw.WriteHeader(code)
				_ = json.NewEncoder(rw).Encode(metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
					Code: int32(code), Reason: reasonOf(code), Message: "so it is"})
			})
			w.pause = time.Millisecond
			err := w.Bind(t.Context(), victim, "n")
			mu.Lock()
			defer mu.Unlock()
			if sent != c.sent || (c.want == nil) != (err == nil) || c.want != nil && !c.want(err) {
				t.Errorf("sent %d, want %d; %v", sent, c.sent, err)
			}
		})
	}
}

// reasonOf is how a server names what it answers.
func reasonOf(code int) metav1.StatusReason {
	i := slices.IndexFunc([]int{500, 503, 504, 429, 409, 403}, func(c int) bool { return c == code })
	if i < 0 {
		return ""
	}
	return []metav1.StatusReason{metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable,
		metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonConflict,
		metav1.StatusReasonForbidden}[i]
}
