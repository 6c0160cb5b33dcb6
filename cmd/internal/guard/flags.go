package guard

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/delegated"
)

// Flags holds the flags about who may use a component's HTTPS server, under upstream's names.
type Flags struct {
	AuthenticationKubeconfig, AuthorizationKubeconfig, ClientCAFile string
	SkipLookup                                                      bool
	AlwaysAllowPaths                                                []string
	TokenTTL, AllowedTTL, DeniedTTL                                 time.Duration
}

// AddFlags registers the flags with upstream's defaults.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	const ttl = 10 * time.Second
	fs.StringVar(&f.AuthenticationKubeconfig, "authentication-kubeconfig", "", "Kubeconfig file of the API server that is asked whose a token is (tokenreviews) and which client certificates to accept. Without one all who bring a token are anonymous and no client CA is looked up.")
	fs.BoolVar(&f.SkipLookup, "authentication-skip-lookup", false, "Do not look up the client CA that the API server publishes.")
	fs.DurationVar(&f.TokenTTL, "authentication-token-webhook-cache-ttl", ttl, "How long the answer whose a token is stays valid.")
	fs.StringVar(&f.AuthorizationKubeconfig, "authorization-kubeconfig", "", "Kubeconfig file of the API server that is asked who may do what (subjectaccessreviews). Without one all that is not always allowed is forbidden.")
	fs.StringSliceVar(&f.AlwaysAllowPaths, "authorization-always-allow-paths", []string{"/healthz", "/readyz", "/livez"}, "HTTP paths that need no authorization; a trailing * stands for all that begin so.")
	fs.DurationVar(&f.AllowedTTL, "authorization-webhook-cache-authorized-ttl", ttl, "How long a permission stays valid.")
	fs.DurationVar(&f.DeniedTTL, "authorization-webhook-cache-unauthorized-ttl", ttl, "How long a refusal stays valid.")
	fs.StringVar(&f.ClientCAFile, "client-ca-file", "", "Who shows a client certificate of an authority in this file is the certificate's common name. Without one the API server's published client CA is looked up.")
}

// New builds the guard that the flags ask for. Nothing is sent yet: the API server may start later.
func (f *Flags) New(component string, log *slog.Logger) (*Guard, error) {
	known, err := f.authenticators(component, log)
	if err != nil {
		return nil, err
	}
	paths, err := delegated.NewPaths(f.AlwaysAllowPaths)
	if err != nil {
		return nil, fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	may := delegated.AnyOf{delegated.Group("system:masters"), paths}
	if f.AuthorizationKubeconfig == "" {
		log.Warn("no --authorization-kubeconfig: only what is always allowed is allowed")
	} else {
		client, err := delegatedClient("--authorization-kubeconfig", f.AuthorizationKubeconfig, component)
		if err != nil {
			return nil, err
		}
		may = append(may, delegated.NewReviews(client, delegated.ReviewTTL{Allowed: f.AllowedTTL, Denied: f.DeniedTTL}, time.Now))
	}
	return &Guard{Authenticator: delegated.Anonymous{Known: known}, Authorizer: may, Log: log}, nil
}

// authenticators are client certificates, then tokens.
func (f *Flags) authenticators(component string, log *slog.Logger) (delegated.Union, error) {
	var known delegated.Union
	if f.ClientCAFile != "" {
		roots, err := delegated.ReadRoots(f.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		known = append(known, delegated.Certificates{Roots: roots})
	}
	if f.AuthenticationKubeconfig == "" {
		log.Warn("no --authentication-kubeconfig: tokens are not looked up, nor is the client CA")
		return known, nil
	}
	client, err := delegatedClient("--authentication-kubeconfig", f.AuthenticationKubeconfig, component)
	if err != nil {
		return nil, err
	}
	if f.ClientCAFile == "" && !f.SkipLookup {
		known = append(known, delegated.Certificates{Roots: delegated.NewPublished(client, time.Now, log)})
	}
	return append(known, delegated.NewTokens(client, f.TokenTTL, time.Now)), nil
}

func delegatedClient(flag, path, component string) (*delegated.Client, error) {
	config, err := daemon.Client(flag, path, component)
	if err != nil {
		return nil, err
	}
	return delegated.NewClient(config)
}
