package configuration

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of authorizers.
const (
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"
	ABAC        = "ABAC"
	Node        = "Node"
	RBAC        = "RBAC"
	Webhook     = "Webhook"
)

// Types are all of them.
func Types() []string { return []string{ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook} }

// AuthorizationConfiguration is the file, of apiserver.config.k8s.io/v1.
type AuthorizationConfiguration struct {
	metav1.TypeMeta
	Authorizers []AuthorizerConfiguration `json:"authorizers"`
}

// AuthorizerConfiguration is one authorizer.
type AuthorizerConfiguration struct {
	Type    string                `json:"type"`
	Name    string                `json:"name"`
	Webhook *WebhookConfiguration `json:"webhook"`
}

// WebhookConfiguration is what a webhook is asked, and what its answers mean.
type WebhookConfiguration struct {
	AuthorizedTTL             metav1.Duration         `json:"authorizedTTL"`
	CacheAuthorizedRequests   *bool                   `json:"cacheAuthorizedRequests"`
	UnauthorizedTTL           metav1.Duration         `json:"unauthorizedTTL"`
	CacheUnauthorizedRequests *bool                   `json:"cacheUnauthorizedRequests"`
	Timeout                   metav1.Duration         `json:"timeout"`
	ReviewVersion             string                  `json:"subjectAccessReviewVersion"`
	ConditionVersion          string                  `json:"matchConditionSubjectAccessReviewVersion"`
	FailurePolicy             string                  `json:"failurePolicy"`
	ConnectionInfo            WebhookConnectionInfo   `json:"connectionInfo"`
	MatchConditions           []WebhookMatchCondition `json:"matchConditions"`
}

// WebhookConnectionInfo says where the webhook is.
type WebhookConnectionInfo struct {
	Type           string  `json:"type"`
	KubeConfigFile *string `json:"kubeConfigFile"`
}

// WebhookMatchCondition is a CEL expression that must hold.
type WebhookMatchCondition struct {
	Expression string `json:"expression"`
}

// The values of FailurePolicy and of WebhookConnectionInfo.Type.
const (
	noOpinion       = "NoOpinion"
	deny            = "Deny"
	inClusterConfig = "InClusterConfig"
	kubeConfigFile  = "KubeConfigFile"
)

const (
	defaultAuthorizedTTL   = 5 * time.Minute
	defaultUnauthorizedTTL = 30 * time.Second
	maxTimeout             = 30 * time.Second
	maxConditions          = 64
)

// Denies reports whether a request is denied that the webhook cannot be asked about.
func (w *WebhookConfiguration) Denies() bool { return w.FailurePolicy == deny }

// KubeConfig returns the path of the webhook's kubeconfig; "": it is the API server of the cluster around this process.
func (w *WebhookConfiguration) KubeConfig() string {
	if w.ConnectionInfo.Type == inClusterConfig || w.ConnectionInfo.KubeConfigFile == nil {
		return ""
	}
	return *w.ConnectionInfo.KubeConfigFile
}

// TTLs are how long answers are remembered; 0: they are not.
func (w *WebhookConfiguration) TTLs() (authorized, unauthorized time.Duration) {
	remembered := func(on *bool, ttl time.Duration) time.Duration {
		if on != nil && !*on {
			return 0
		}
		return ttl
	}
	return remembered(w.CacheAuthorizedRequests, w.AuthorizedTTL.Duration),
		remembered(w.CacheUnauthorizedRequests, w.UnauthorizedTTL.Duration)
}

func (w *WebhookConfiguration) setDefaults() {
	if w.AuthorizedTTL.Duration == 0 {
		w.AuthorizedTTL.Duration = defaultAuthorizedTTL
	}
	if w.UnauthorizedTTL.Duration == 0 {
		w.UnauthorizedTTL.Duration = defaultUnauthorizedTTL
	}
}
