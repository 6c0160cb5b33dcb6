package main

import (
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiserver/authz/accessreview"
	"bonsai/pkg/apiserver/authz/configuration"
)

func (o *options) authorizationFlags(fs *pflag.FlagSet) {
	a := &o.parts.Authorization
	w := &a.Webhook
	fs.StringSliceVar(&a.Modes, "authorization-mode", nil,
		"Ordered list of plug-ins to do authorization on secure port. Defaults to AlwaysAllow if --authorization-config is not used. Comma-delimited list of: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.")
	fs.StringVar(&a.ConfigFile, "authorization-config", "",
		"File with an AuthorizationConfiguration (apiserver.config.k8s.io/v1): the authorizers in their order. It is read again when it changes. Not together with --authorization-mode and --authorization-webhook-*.")
	fs.StringVar(&a.PolicyFile, "authorization-policy-file", "",
		"File with authorization policy in json line by line format, used with --authorization-mode=ABAC, on the secure port.")
	fs.StringVar(&w.ConfigFile, "authorization-webhook-config-file", "",
		"File with webhook configuration in kubeconfig format, used with --authorization-mode=Webhook. The API server will query the remote service to determine access on the API server's secure port.")
	fs.StringVar(&w.Version, "authorization-webhook-version", w.Version,
		"The API version of the authorization.k8s.io SubjectAccessReview to send to and expect from the webhook.")
	fs.DurationVar(&w.AuthorizedTTL, "authorization-webhook-cache-authorized-ttl", w.AuthorizedTTL,
		"The duration to cache 'authorized' responses from the webhook authorizer.")
	fs.DurationVar(&w.UnauthorizedTTL, "authorization-webhook-cache-unauthorized-ttl", w.UnauthorizedTTL,
		"The duration to cache 'unauthorized' responses from the webhook authorizer.")
	o.authorizationFlagGiven = func() bool {
		return fs.Changed("authorization-mode") || slices.ContainsFunc([]string{"config-file", "version",
			"cache-authorized-ttl", "cache-unauthorized-ttl"},
			func(name string) bool { return fs.Changed("authorization-webhook-" + name) })
	}
}

// validateAuthorization reports what is wrong with the flags of authorization, and chooses the default.
func (o *options) validateAuthorization() error {
	a := &o.parts.Authorization
	if a.ConfigFile != "" {
		return daemon.Require(!o.authorizationFlagGiven(),
			"--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined")
	}
	if len(a.Modes) == 0 && !o.authorizationFlagGiven() {
		a.Modes = []string{configuration.AlwaysAllow}
	}
	uses := func(kind string) bool { return slices.Contains(a.Modes, kind) }
	errs := []error{daemon.Require(len(a.Modes) > 0, "at least one authorization-mode must be passed")}
	for _, m := range a.Modes {
		errs = append(errs,
			daemon.Require(slices.Contains(configuration.Types(), m), "authorization-mode %q is not a valid mode", m))
	}
	sorted := slices.Sorted(slices.Values(a.Modes))
	errs = append(errs,
		daemon.Require(len(slices.Compact(sorted)) == len(a.Modes),
			"authorization-mode %q has mode specified more than once", a.Modes),
		daemon.Require(!uses(configuration.ABAC) || a.PolicyFile != "",
			"authorization-mode ABAC's authorization policy file not passed"),
		daemon.Require(uses(configuration.ABAC) || a.PolicyFile == "",
			"cannot specify --authorization-policy-file without mode ABAC"),
		daemon.Require(!uses(configuration.Webhook) || a.Webhook.ConfigFile != "",
			"authorization-mode Webhook's authorization config file not passed"),
		daemon.Require(uses(configuration.Webhook) || a.Webhook.ConfigFile == "",
			"cannot specify --authorization-webhook-config-file without mode Webhook"),
		daemon.Require(slices.Contains(accessreview.Versions(), a.Webhook.Version),
			"unsupported webhook authorizer version %q, supported versions are \"v1\", \"v1beta1\"", a.Webhook.Version))
	return errors.Join(errs...)
}
