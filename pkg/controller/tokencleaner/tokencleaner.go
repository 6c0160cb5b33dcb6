// Package tokencleaner deletes bootstrap tokens when they expire.
package tokencleaner

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
)

const (
	namespace  = "kube-system"
	secretType = "bootstrap.kubernetes.io/token"
	expiration = "expiration"
)

// New returns the controller; its cache fills when d.Informers run.
func New(d controller.Deps) (*controller.Cleaner[*corev1.Secret], error) {
	return controller.NewCleaner(d, controller.CleanerConfig[*corev1.Secret]{
		Name: "token-cleaner", Workers: 1,
		Objects: controller.FilteredInformerFor(d.Informers, core.Secrets,
			apiclient.Selection{Namespace: namespace, Fields: "type=" + secretType}),
		Writes: core.Secrets(d.Client),
		Over:   over,
	})
}

// over returns when a token expires. One with an unreadable date has expired, one without a date never does.
func over(s *corev1.Secret) (at time.Time, ends bool) {
	text := string(s.Data[expiration])
	if text == "" {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, true // long ago
	}
	return at, true
}
