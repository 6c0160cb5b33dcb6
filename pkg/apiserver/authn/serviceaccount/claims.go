package serviceaccount

import (
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names one object for good: a new object of the same name has another UID.
type Ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// audienceClaim is always an array, as in Kubernetes' tokens; jwt.Claims writes a single audience as a string.
type audienceClaim struct {
	Audience []string `json:"aud"`
}

// privateClaims is the "kubernetes.io" claim of a bound token.
type privateClaims struct {
	Kubernetes *bound `json:"kubernetes.io,omitempty"`
}

type bound struct {
	Namespace      string           `json:"namespace,omitempty"`
	ServiceAccount Ref              `json:"serviceaccount"`
	Pod            *Ref             `json:"pod,omitempty"`
	Secret         *Ref             `json:"secret,omitempty"`
	Node           *Ref             `json:"node,omitempty"`
	WarnAfter      *jwt.NumericDate `json:"warnafter,omitempty"`
}

// legacyClaims are those of a token in a secret.
type legacyClaims struct {
	Name      string    `json:"kubernetes.io/serviceaccount/service-account.name"`
	UID       types.UID `json:"kubernetes.io/serviceaccount/service-account.uid"`
	Secret    string    `json:"kubernetes.io/serviceaccount/secret.name"`
	Namespace string    `json:"kubernetes.io/serviceaccount/namespace"`
}
