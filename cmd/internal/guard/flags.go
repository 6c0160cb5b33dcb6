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
	tokens, reviews, err := f.clients(component, log)
	if err != nil {
		return nil, err
	}
	var known delegated.Union
	switch {
	case f.ClientCAFile != "":
		roots, err := delegated.ReadRoots(f.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		known = append(known, delegated.Certificates{Roots: roots})
	case tokens != nil && !f.SkipLookup:
		known = append(known, delegated.Certificates{Roots: delegated.NewPublished(tokens, time.Now, log)})
	}
	if tokens != nil {
		known = append(known, delegated.NewTokens(tokens, f.TokenTTL, time.Now))
	}
	paths, err := delegated.NewPaths(f.AlwaysAllowPaths)
	if err != nil {
		return nil, fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	may := delegated.AnyOf{delegated.Group("system:masters"), paths}
	if reviews != nil {
		may = append(may, delegated.NewReviews(reviews, delegated.ReviewTTL{Allowed: f.AllowedTTL, Denied: f.DeniedTTL}, time.Now))
	}
	return &Guard{Authenticator: delegated.Anonymous{Known: known}, Authorizer: may, Log: log}, nil
}

// clients are those that ask about tokens and about access: nil without a kubeconfig, one and the same with one file.
func (f *Flags) clients(component string, log *slog.Logger) (tokens, reviews *delegated.Client, err error) {
	if f.AuthenticationKubeconfig == "" {
		log.Warn("no --authentication-kubeconfig: tokens are not looked up, nor is the client CA")
	} else if tokens, err = client("--authentication-kubeconfig", f.AuthenticationKubeconfig, component); err != nil {
		return nil, nil, err
	}
	switch f.AuthorizationKubeconfig {
	case "":
		log.Warn("no --authorization-kubeconfig: only what is always allowed is allowed")
	case f.AuthenticationKubeconfig:
		reviews = tokens
	default:
		reviews, err = client("--authorization-kubeconfig", f.AuthorizationKubeconfig, component)
	}
	return tokens, reviews, err
}

func client(flag, path, component string) (*delegated.Client, error) {
	config, err := daemon.Client(flag, path, component)
	if err != nil {
		return nil, err
	}
	return delegated.NewClient(config)
}
