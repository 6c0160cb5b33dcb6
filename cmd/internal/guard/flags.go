package guard

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/authorities"
	"bonsai/pkg/delegated"
	"bonsai/pkg/frontproxy"
)

// Flags holds the flags about who may use a component's HTTPS server, under upstream's names.
type Flags struct {
	AuthenticationKubeconfig, AuthorizationKubeconfig, ClientCAFile string
	SkipLookup                                                      bool
	AlwaysAllowPaths                                                []string
	TokenTTL, AllowedTTL, DeniedTTL                                 time.Duration
	// ProxyCAFile, AllowedNames and Headers are whom a front proxy may speak for, and how.
	ProxyCAFile  string
	AllowedNames []string
	Headers      frontproxy.Headers
}

// AddFlags registers the flags with upstream's defaults.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	const ttl = 10 * time.Second
	fs.StringVar(&f.AuthenticationKubeconfig, "authentication-kubeconfig", "",
		"Kubeconfig file of the API server that is asked whose a token is (tokenreviews) and which client certificates to accept. Without one all who bring a token are anonymous and no client CA is looked up.")
	fs.BoolVar(&f.SkipLookup, "authentication-skip-lookup", false,
		"Do not look up the client CA that the API server publishes.")
	fs.DurationVar(&f.TokenTTL, "authentication-token-webhook-cache-ttl", ttl,
		"How long the result of authenticating a token is cached.")
	fs.StringVar(&f.AuthorizationKubeconfig, "authorization-kubeconfig", "",
		"Kubeconfig file of the API server that is asked who may do what (subjectaccessreviews). Without one all that is not always allowed is forbidden.")
	fs.StringSliceVar(&f.AlwaysAllowPaths, "authorization-always-allow-paths",
		[]string{"/healthz", "/readyz", "/livez"},
		"HTTP paths that need no authorization; a trailing * stands for all that begin so.")
	fs.DurationVar(&f.AllowedTTL, "authorization-webhook-cache-authorized-ttl", ttl,
		"How long an 'allowed' answer is cached.")
	fs.DurationVar(&f.DeniedTTL, "authorization-webhook-cache-unauthorized-ttl", ttl, "How long a 'denied' answer is cached.")
	fs.StringVar(&f.ClientCAFile, "client-ca-file", "",
		"Who shows a client certificate of an authority in this file is the certificate's common name. Without one the API server's published client CA is looked up, and followed.")
	fs.StringVar(&f.ProxyCAFile, "requestheader-client-ca-file", "",
		"Who shows a client certificate of an authority in this file is a front proxy, which names users in headers. Without one all of --requestheader-* is what the API server publishes.")
	fs.StringSliceVar(&f.AllowedNames, "requestheader-allowed-names", nil,
		"Common names that a front proxy's certificate may have; empty: any.")
	fs.StringSliceVar(&f.Headers.UsernameHeaders, "requestheader-username-headers", []string{"X-Remote-User"},
		"Headers in which front proxies name the user.")
	fs.StringSliceVar(&f.Headers.UIDHeaders, "requestheader-uid-headers", nil,
		"Headers in which front proxies give the user's UID.")
	fs.StringSliceVar(&f.Headers.GroupHeaders, "requestheader-group-headers", []string{"X-Remote-Group"},
		"Headers in which front proxies name the user's groups.")
	fs.StringSliceVar(&f.Headers.ExtraHeaderPrefixes, "requestheader-extra-headers-prefix", []string{"X-Remote-Extra-"},
		"Prefixes of headers in which front proxies give more of the user.")
}

// New builds the guard that the flags ask for. Nothing is sent yet: the API server may start later.
func (f *Flags) New(component string, log *slog.Logger) (*Guard, error) {
	tokens, reviews, err := f.clients(component, log)
	if err != nil {
		return nil, err
	}
	known, clients, follow, err := f.certificates(tokens, log)
	if err != nil {
		return nil, err
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
		may = append(may, delegated.NewReviews(reviews, delegated.ReviewTTL{Allowed: f.AllowedTTL, Denied: f.DeniedTTL},
			time.Now))
	}
	return &Guard{Authenticator: delegated.Anonymous{Known: known}, Authorizer: may, Everybody: paths, Clients: clients,
		follow: follow, Log: log}, nil
}

// certificates are those who are known by client certificates: front proxies first, as with the API server, then
// clients. The authorities are a file's where a flag names it, and else those that the API server publishes, unless
// nobody may look. follow keeps these up to date.
func (f *Flags) certificates(tokens *delegated.Client, log *slog.Logger) (known delegated.Union, ask *authorities.Set,
	follow func(context.Context), err error) {
	var clients, proxies authorities.Source
	var trust func() frontproxy.Trust
	if tokens != nil && !f.SkipLookup && (f.ClientCAFile == "" || f.ProxyCAFile == "") {
		published := tokens.Published(log)
		clients, proxies, trust, follow = published.Clients(), published.Proxies(), published.Trust, published.Run
	}
	if f.ProxyCAFile != "" {
		file, err := authorities.NewFile(f.ProxyCAFile, log)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--requestheader-client-ca-file: %w", err)
		}
		proxies, trust = file, func() frontproxy.Trust {
			return frontproxy.Trust{Roots: file.Bundle().Pool, AllowedNames: f.AllowedNames, Headers: f.Headers}
		}
	}
	if f.ClientCAFile != "" {
		file, err := authorities.NewFile(f.ClientCAFile, log)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("--client-ca-file: %w", err)
		}
		clients = file
	}
	var all []authorities.Source
	if proxies != nil {
		known = append(known, delegated.FrontProxy{Trust: trust})
	}
	if clients != nil {
		known, all = append(known, delegated.Certificates{Roots: clients}), append(all, clients)
	}
	if proxies != nil {
		all = append(all, proxies)
	}
	return known, authorities.Of(all...), follow, nil
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
	config, err := daemon.Client(flag, path, "", component)
	if err != nil {
		return nil, err
	}
	return delegated.NewClient(config)
}
