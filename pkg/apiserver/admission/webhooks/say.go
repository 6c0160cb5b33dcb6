package webhooks

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// denied is the error for a request that a webhook refuses: its Status, as far as it makes sense.
func denied(hook string, said *metav1.Status) *apierrors.StatusError {
	out := metav1.Status{}
	if said != nil {
		out = *said
	}
	if out.Code < http.StatusBadRequest {
		out.Code = http.StatusBadRequest
	}
	if out.Status == "" || out.Status == metav1.StatusSuccess {
		out.Status = metav1.StatusFailure
	}
	by := fmt.Sprintf("admission webhook %q denied the request", hook)
	switch {
	case out.Message != "":
		out.Message = by + ": " + out.Message
	case out.Reason != "":
		out.Message = fmt.Sprintf("%s: %s", by, out.Reason)
	default:
		out.Message = by + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: out}
}

// What a webhook's warnings may be, in characters: all together, and each of them where that is too much.
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// warnings are those that can be sent: text without control characters, and not too much of it.
func warnings(said []string) []string {
	var out []string
	total := 0
	for _, w := range said {
		if w == "" || !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
			continue
		}
		length := utf8.RuneCountInString(w)
		if total += length; total > maxWarnings && length > maxWarning {
			total += maxWarning - length
			w = string([]rune(w)[:maxWarning])
		}
		if total > maxWarnings {
			break
		}
		out = append(out, w)
	}
	return out
}
