package assemble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/bootstrap"
	"bonsai/pkg/apiserver/masterleases"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/health"
)

// newBootstrap says what an empty cluster starts with. servers may be nil: nobody keeps the endpoints of the Service
// "kubernetes".
func newBootstrap(o *Options, stores registry.Stores, who *authentication, may *authorization,
	policy *bootstrap.Policy, servers *masterleases.Leases, log *slog.Logger) (*bootstrap.Bootstrap, error) {
	cfg := bootstrap.Config{Stores: stores, Log: log}
	if may.usesRBAC {
		cfg.Policy = policy
	}
	cfg.Service = &bootstrap.ServiceConfig{Ranges: o.ServiceRanges,
		ClusterIP: bootstrap.FirstAddress(o.ServiceRanges[0]), Port: int32(o.Port)}
	if servers != nil {
		cfg.Service.Servers = servers.Alive
	}
	settings := o.Authentication
	cfg.Authentication = func() (*bootstrap.Authentication, error) { return authenticationSettings(&settings, who) }
	if _, err := cfg.Authentication(); err != nil {
		return nil, err
	}
	return bootstrap.New(cfg), nil
}

// authenticationSettings are published for servers behind this one, with the authorities that the files have now.
func authenticationSettings(o *Authentication, who *authentication) (*bootstrap.Authentication, error) {
	a := &bootstrap.Authentication{}
	if o.ClientCA != "" {
		pem, err := os.ReadFile(o.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		a.ClientCA = string(pem)
	}
	if who.proxyCA == nil {
		return a, nil
	}
	pem, err := os.ReadFile(o.RequestHeader.CA)
	if err != nil {
		return nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	a.RequestHeaderCA = string(pem)
	h := &o.RequestHeader
	a.AllowedNames, a.UsernameHeaders, a.UIDHeaders, a.GroupHeaders, a.ExtraHeaderPrefixes = h.AllowedNames,
		h.Usernames, h.UIDs, h.Groups, h.ExtraHeaderPrefixes
	return a, nil
}

// bootstrapChecks fail until what an empty cluster starts with is stored, each for its part, and the authorizer has
// heard of the default roles and bindings: before that, components that start with the server would be refused.
func bootstrapChecks(boot *bootstrap.Bootstrap, policy *bootstrap.Policy, may *authorization) []health.Check {
	var known atomic.Bool
	var checks []health.Check
	for _, p := range boot.Parts() {
		checks = append(checks, health.Check{Name: startHook + p.Name, Run: func(*http.Request) error {
			if !p.Made() {
				return errors.New("not stored yet")
			}
			if p.Name != bootstrap.PartRoles || known.Load() {
				return nil
			}
			if err := knows(may, policy); err != nil {
				return err
			}
			known.Store(true)
			return nil
		}})
	}
	return checks
}

// knows returns an error if a default role or binding has not reached the authorizer yet.
func knows(may *authorization, policy *bootstrap.Policy) error {
	for role, binding := range policy.Names {
		if !may.rbac.Knows(role, binding) {
			return fmt.Errorf("the authorizer does not know %s%s yet", role, binding)
		}
	}
	return nil
}

// rolesKnown returns what looks, until its ctx ends, whether the default roles and bindings are stored and the
// authorizer has heard of them, and a channel that it then closes; nil if the server makes none.
func rolesKnown(boot *bootstrap.Bootstrap, policy *bootstrap.Policy,
	may *authorization) (run func(context.Context) error, known <-chan struct{}) {
	i := slices.IndexFunc(boot.Parts(), func(p *bootstrap.Part) bool { return p.Name == bootstrap.PartRoles })
	if i < 0 {
		return nil, nil
	}
	done := make(chan struct{})
	return func(ctx context.Context) error {
		look := time.NewTicker(rolesLook)
		defer look.Stop()
		for !boot.Parts()[i].Made() || knows(may, policy) != nil {
			select {
			case <-look.C:
			case <-ctx.Done():
				return nil
			}
		}
		close(done)
		<-ctx.Done()
		return nil
	}, done
}

// rolesLook is how often it is looked for the default roles while they are being made.
const rolesLook = 5 * time.Millisecond
