package webhook

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxShown is how much of a refusal's text an error shows.
const maxShown = 2048

// Refusal is the error for an answer of another code than 2xx, as client-go words it: the Status in the body if there
// is one.
func Refusal(answer *http.Response, body []byte) error {
	var said metav1.Status
	if json.Unmarshal(body, &said) == nil && said.Kind == "Status" && said.APIVersion == "v1" &&
		said.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: said}
	}
	shown := "unknown"
	if isText(answer.Header.Get("Content-Type")) {
		shown = strings.TrimSpace(string(body[:min(len(body), maxShown)]))
	}
	retryAfter, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil {
		retryAfter = 0
	}
	return apierrors.NewGenericServerResponse(answer.StatusCode, http.MethodPost, schema.GroupResource{}, "", shown,
		retryAfter, true)
}

func isText(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}
