package main

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/authorities"
	"bonsai/pkg/delegated"
	"bonsai/pkg/kubelet"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/server"
)

// api makes the HTTPS server. If serving is nil, no manager renews the certificate: it comes from the files, or is
// self-signed.
func api(s *settings, connection *rest.Config, k *kubelet.Kubelet, name string, serving *certificate.Manager,
	registry *prometheus.Registry, log *slog.Logger) (*server.Server, error) {
	c := s.file
	current := serving.Current
	if serving == nil {
		var err error
		if current, err = ownServing(s, name, k.NodeIPs(), log); err != nil {
			return nil, err
		}
	}
	var clients authorities.Source
	var ask *authorities.Set
	if path := c.Authentication.X509.ClientCAFile; path != "" {
		file, err := authorities.NewFile(path, log)
		if err != nil {
			return nil, fmt.Errorf("authentication.x509.clientCAFile: %w", err)
		}
		clients, ask = file, authorities.Of(file)
	}
	who, may, err := access(c, clients, connection)
	if err != nil {
		return nil, err
	}
	spoken, err := spokenTLS(c)
	if err != nil {
		return nil, err // was checked with the settings
	}
	// An empty directory turns /logs/ off.
	logDir := "/var/log"
	if !*c.EnableSystemLogHandler {
		logDir = ""
	}
	profiles := profiling.Flags{Enabled: *c.EnableProfilingHandler, Contention: c.EnableContentionProfiling}
	profiles.Start()
	configz := shown(c)
	return k.Server(server.Config{
		Address: net.JoinHostPort(c.Address, strconv.Itoa(int(c.Port))), Certificate: current, TLS: spoken,
		Clients: ask, Authenticator: who, Authorizer: may,
		Registry: registry, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Configz: func() any { return configz }, LogDir: logDir,
		Pages: s.pages, Profiles: profiles.Paths(), NoDebugging: !*c.EnableDebuggingHandlers,
		Idle: c.StreamingConnectionIdleTimeout.Duration,
	})
}

// access returns how clients are authenticated and authorized, by the configuration. If clients is nil, certificates do
// not authenticate. The API server answers what the kubelet does not know itself: whose a token is, and who may do
// what. Both answers are cached, so that each request of Prometheus is not two requests to the API server.
func access(c *kubeletconfig.KubeletConfiguration, clients authorities.Source,
	connection *rest.Config) (delegated.Authenticator, delegated.Authorizer, error) {
	asked, err := delegated.NewClient(connection)
	if err != nil {
		return nil, nil, err
	}
	var known delegated.Union
	if clients != nil {
		known = append(known, delegated.Certificates{Roots: clients})
	}
	if *c.Authentication.Webhook.Enabled {
		known = append(known, delegated.NewTokens(asked, c.Authentication.Webhook.CacheTTL.Duration, time.Now))
	}
	var who delegated.Authenticator = known
	if a := c.Authentication.Anonymous.Enabled; a != nil && *a {
		who = delegated.Anonymous{Known: known}
	}
	if c.Authorization.Mode == "AlwaysAllow" {
		return who, delegated.AlwaysAllow{}, nil
	}
	w := c.Authorization.Webhook
	return who, delegated.NewReviews(asked,
		delegated.ReviewTTL{Allowed: w.CacheAuthorizedTTL.Duration, Denied: w.CacheUnauthorizedTTL.Duration},
		time.Now), nil
}
