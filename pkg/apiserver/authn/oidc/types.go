package oidc

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Configuration is the file of --authentication-config: AuthenticationConfiguration of apiserver.config.k8s.io.
type Configuration struct {
	metav1.TypeMeta
	// JWT are the issuers whose tokens are accepted.
	JWT []JWT `json:"jwt"`
	// Anonymous says who may come without credentials; nil: --anonymous-auth does.
	Anonymous *Anonymous `json:"anonymous"`
}

// Anonymous says whether requests without credentials are those of system:anonymous.
type Anonymous struct {
	Enabled bool `json:"enabled"`
	// Conditions are the paths that such requests may have.
	Conditions []AnonymousCondition `json:"conditions"`
}

// AnonymousCondition is an exact path.
type AnonymousCondition struct {
	Path string `json:"path"`
}

// JWT says which tokens of an issuer are accepted, and whose each is.
type JWT struct {
	Issuer               Issuer                `json:"issuer"`
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules"`
	ClaimMappings        ClaimMappings         `json:"claimMappings"`
	UserValidationRules  []UserValidationRule  `json:"userValidationRules"`
	// algorithms are those of signatures; nil: all that Kubernetes knows. The file cannot say it, --oidc-signing-algs
	// does.
	algorithms []string
}

// Issuer is an OpenID provider.
type Issuer struct {
	// URL is the "iss" of its tokens.
	URL string `json:"url"`
	// DiscoveryURL is where its configuration is; "": at the well-known path below URL.
	DiscoveryURL string `json:"discoveryURL"`
	// CertificateAuthority are PEM certificates; "": the machine's authorities.
	CertificateAuthority string `json:"certificateAuthority"`
	// Audiences: a token must have one of them.
	Audiences           []string `json:"audiences"`
	AudienceMatchPolicy string   `json:"audienceMatchPolicy"`
	// EgressSelectorType is the kind of its connections for --egress-selector-config-file; "": they are direct.
	EgressSelectorType string `json:"egressSelectorType"`
}

// matchAny is the only AudienceMatchPolicy.
const matchAny = "MatchAny"

// discovery is the URL of the provider's configuration.
func (i *Issuer) discovery() string {
	if i.DiscoveryURL != "" {
		return i.DiscoveryURL
	}
	return strings.TrimSuffix(i.URL, "/") + "/.well-known/openid-configuration"
}

// ClaimValidationRule is a claim with its required value, or a CEL expression about all claims.
type ClaimValidationRule struct {
	Claim         string `json:"claim"`
	RequiredValue string `json:"requiredValue"`
	Expression    string `json:"expression"`
	Message       string `json:"message"`
}

// ClaimMappings make a user of claims.
type ClaimMappings struct {
	Username PrefixedClaimOrExpression `json:"username"`
	Groups   PrefixedClaimOrExpression `json:"groups"`
	UID      ClaimOrExpression         `json:"uid"`
	Extra    []ExtraMapping            `json:"extra"`
}

// PrefixedClaimOrExpression is a claim with what comes before its value, or a CEL expression.
type PrefixedClaimOrExpression struct {
	Claim      string  `json:"claim"`
	Prefix     *string `json:"prefix"`
	Expression string  `json:"expression"`
}

// ClaimOrExpression is a claim or a CEL expression.
type ClaimOrExpression struct {
	Claim      string `json:"claim"`
	Expression string `json:"expression"`
}

// ExtraMapping is a key of the user's extra and the CEL expression of its values.
type ExtraMapping struct {
	Key             string `json:"key"`
	ValueExpression string `json:"valueExpression"`
}

// UserValidationRule is a CEL expression about the user.
type UserValidationRule struct {
	Expression string `json:"expression"`
	Message    string `json:"message"`
}
