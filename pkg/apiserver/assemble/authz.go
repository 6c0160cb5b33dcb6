package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/abac"
	"bonsai/pkg/apiserver/authz/accessreview"
	"bonsai/pkg/apiserver/authz/always"
	"bonsai/pkg/apiserver/authz/configuration"
	"bonsai/pkg/apiserver/authz/node"
	"bonsai/pkg/apiserver/authz/rbac"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/health"
)

// Authorization says who may do what.
type Authorization struct {
	// Modes are asked in their order: AlwaysAllow, AlwaysDeny, ABAC, Webhook, Node, RBAC.
	Modes []string
	// PolicyFile holds the policies of ABAC.
	PolicyFile string
	// Webhook is the mode Webhook's.
	Webhook AuthorizationWebhook
	// ConfigFile names the authorizers in place of Modes; "": Modes do.
	ConfigFile string
}

// AuthorizationWebhook is a webhook that knows who may do what. ConfigFile is a kubeconfig.
type AuthorizationWebhook struct {
	ConfigFile, Version            string
	AuthorizedTTL, UnauthorizedTTL time.Duration
}

// webhookTimeout is how long a webhook of the flags may take, as upstream's.
const webhookTimeout = 30 * time.Second

// modes are the authorizers of the flags, as a file would name them.
func (a *Authorization) modes() []configuration.Mode {
	out := make([]configuration.Mode, len(a.Modes))
	for n, kind := range a.Modes {
		out[n] = configuration.Mode{Type: kind, Name: strings.ToLower(kind)}
		if kind == configuration.Webhook {
			out[n].Name = "default"
		}
	}
	return out
}

// authorization is everything about who may do what.
type authorization struct {
	authorizer authz.Authorizer
	lister     authz.Lister
	rbac       *rbac.Authorizer // also without the RBAC mode, for reviews and escalation checks; runs only when in use
	node       *node.Authorizer // runs only when in use, too
	// usesRBAC reports whether that mode is in use.
	usesRBAC bool

	runs []func(context.Context) error
	// informers are the modes that must hear of objects before they can decide.
	informers map[string]informer

	settings Authorization
	counted  *authz.Metrics
	webhooks *accessreview.Metrics
	// dial opens the connections to webhooks through a proxy; nil: they are direct.
	dial selector.Dial
	log  *slog.Logger
}

// informer is something that hears of all objects of a kind.
type informer interface{ HasSynced() bool }

// informerSync is upstream's check of this name. It fails until every mode knows the objects that it decides by: until
// then the rights that they give are refused.
func (a *authorization) informerSync() health.Check {
	return health.Check{Name: "informer-sync", Run: func(*http.Request) error {
		for mode, i := range a.informers {
			if !i.HasSynced() {
				return fmt.Errorf("the authorization mode %s does not know all objects yet", mode)
			}
		}
		return nil
	}}
}

// newAuthorization builds the ordered union of the modes behind the group that may do everything.
func newAuthorization(o *Options, s *sources, nodeRules []rbacv1.PolicyRule, log *slog.Logger) (*authorization, error) {
	a := &authorization{rbac: rbac.New(rbac.Config{
		Roles: s.of(rbacv1.GroupName, "roles"), RoleBindings: s.of(rbacv1.GroupName, "rolebindings"),
		ClusterRoles:        s.of(rbacv1.GroupName, "clusterroles"),
		ClusterRoleBindings: s.of(rbacv1.GroupName, "clusterrolebindings"),
		Log:                 log,
	}), informers: map[string]informer{}, settings: o.Authorization, counted: authz.NewMetrics(o.Metrics),
		webhooks: accessreview.NewMetrics(o.Metrics), dial: o.Egress.Dial(selector.ControlPlane), log: log}
	a.node = node.New(node.Config{Pods: s.of("", "pods"), Volumes: s.of("", "persistentvolumes"),
		Attachments: s.of(storagev1.GroupName, "volumeattachments"),
		Slices:      s.of(resourcev1.GroupName, "resourceslices"),
		Requests:    s.of(certificatesv1.GroupName, "podcertificaterequests"), Rules: nodeRules, Log: log})
	modes := a.settings.modes()
	var all configuration.Built
	var err error
	if file := a.settings.ConfigFile; file != "" {
		var followed *configuration.Authorizer
		if followed, err = configuration.Open(file, configuration.Options{Build: a.union,
			Metrics: configfile.NewMetrics(o.Metrics, "authorization", o.Hostname), Log: log}); err != nil {
			return nil, err
		}
		all, modes = followed, followed.Modes()
		a.runs = append(a.runs, followed.Run)
	} else if all, err = a.union(modes); err != nil {
		return nil, fmt.Errorf("invalid authorization config: %w", err)
	}
	a.authorizer, a.lister = all, all
	if configuration.Uses(modes, configuration.Node) {
		a.runs = append(a.runs, a.node.Run)
		a.informers[configuration.Node] = a.node
	}
	if a.usesRBAC = configuration.Uses(modes, configuration.RBAC); a.usesRBAC {
		a.runs = append(a.runs, a.rbac.Run)
		a.informers[configuration.RBAC] = a.rbac
	}
	return a, s.missing
}

// union makes what decides by modes.
func (a *authorization) union(modes []configuration.Mode) (configuration.Built, error) {
	all := []authz.Authorizer{authz.Privileged(request.GroupMasters)}
	var lists []authz.Lister
	for i := range modes {
		m := &modes[i]
		one, err := a.mode(m)
		if err != nil {
			return nil, err
		}
		all, lists = append(all, a.counted.Counted(m.Type, m.Name, authz.Named(m.Name, one))), append(lists, one)
	}
	return struct {
		authz.Authorizer
		authz.Lister
	}{authz.Union(all...), authz.Lists(lists...)}, nil
}

func (a *authorization) mode(m *configuration.Mode) (configuration.Built, error) {
	switch m.Type {
	case configuration.AlwaysAllow:
		return always.Allow{}, nil
	case configuration.AlwaysDeny:
		return always.Deny{}, nil
	case configuration.Node:
		return a.node, nil
	case configuration.RBAC:
		return a.rbac, nil
	case configuration.ABAC:
		policies, unversioned, err := abac.Load(a.settings.PolicyFile)
		if unversioned > 0 {
			a.log.Warn("the policy file has lines without a version", "path", a.settings.PolicyFile, "lines",
				unversioned)
		}
		return policies, err
	case configuration.Webhook:
		return accessreview.New(a.webhook(m))
	}
	return nil, fmt.Errorf("unknown authorization mode %s specified", m.Type)
}

// webhook is the webhook of the flags, or of a file.
func (a *authorization) webhook(m *configuration.Mode) accessreview.Config {
	c := accessreview.Config{Name: m.Name, Metrics: a.webhooks, Conditions: m.Conditions, Dial: a.dial}
	if w := m.Webhook; w != nil {
		c.File, c.Timeout, c.Version = w.KubeConfig(), w.Timeout.Duration, w.ReviewVersion
		c.AuthorizedTTL, c.UnauthorizedTTL = w.TTLs()
		if w.Denies() {
			c.OnError = authz.Deny
		}
		return c
	}
	w := &a.settings.Webhook
	c.File, c.Timeout, c.Version = w.ConfigFile, webhookTimeout, w.Version
	c.AuthorizedTTL, c.UnauthorizedTTL = w.AuthorizedTTL, w.UnauthorizedTTL
	return c
}
