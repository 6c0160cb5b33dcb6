package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/api/resources/rows"
	"bonsai/api/validate"
	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/admission/defaulttolerationseconds"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authn/oidc"
	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/authn/tokenreview"
	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/runtimeconfig"
	"bonsai/pkg/featuregates"
	"bonsai/pkg/safetext"
)

// options are the values of all flags.
type options struct {
	logging   daemon.Logging
	metrics   daemon.MetricFlags
	tracing   daemon.Tracing
	serving   daemon.Serving
	profiling profiling.Flags
	gates     featuregates.Flag

	// Storage
	etcdServers, etcdOverrides        []string
	etcdCA, etcdCert, etcdKey         string
	etcdPrefix                        string
	etcdCompaction, etcdHealthTimeout time.Duration
	etcdReadyTimeout                  time.Duration
	eventTTL                          time.Duration
	encryptionConfig                  string
	encryptionReload                  bool
	egressSelectorFile                string

	// Serving
	bindAddress, advertiseAddress string
	externalHostname              string
	securePort                    int
	signingEndpoint               string
	tlsCert, tlsKey, certDir      string
	maxReading, maxMutating       int
	fairness                      bool
	requestTimeout                time.Duration
	minRequestTimeout             int
	shutdownDelay, watchGrace     time.Duration
	livezGrace                    time.Duration
	sendRetryAfter                bool
	origins, strictTransport      []string
	runtimeConfig                 map[string]string
	goAwayChance                  float64
	maxBodyValues                 int
	collectGarbage                bool

	aggregation                        assemble.Aggregation
	aggregatorRouting, rejectRedirects bool

	audit assemble.Audit
	// admissionFile is --admission-control-config-file.
	admissionFile string
	// auditVersions are the values of the flags that choose a version of the audit log, which has one.
	auditVersions []*string
	// authorizationFlagGiven reports whether a flag is given that --authorization-config replaces.
	authorizationFlagGiven func() bool

	// parts are the options of what is plugged in. Of them, what upstream's flags say in other words is below.
	parts               assemble.Options
	endpointReconciler  string
	allowPrivileged     bool
	serviceRanges       string
	kubeletAddressTypes []string

	notReadySeconds, unreachableSeconds int64
}

// defaults are upstream's.
func defaults() *options {
	return &options{
		etcdPrefix: "/registry", etcdCompaction: 5 * time.Minute, etcdHealthTimeout: 2 * time.Second,
		eventTTL: time.Hour, etcdReadyTimeout: 2 * time.Second,
		bindAddress: "0.0.0.0", securePort: 6443, certDir: "/var/run/kubernetes", maxReading: 400,
		maxBodyValues: rest.DefaultValues, maxMutating: 200, fairness: true,
		requestTimeout: time.Minute, minRequestTimeout: 1800, collectGarbage: true,
		parts: assemble.Options{
			Authentication: assemble.Authentication{Anonymous: true, AccountLookup: true, ExtendTokens: true,
				RequestHeader: assemble.RequestHeader{
					Usernames: []string{"x-remote-user"}, UIDs: []string{"x-remote-uid"},
					Groups: []string{"x-remote-group"}, ExtraHeaderPrefixes: []string{"x-remote-extra-"}},
				OIDC:    oidc.Flags{UsernameClaim: "sub", SigningAlgs: []string{"RS256"}},
				Webhook: assemble.TokenWebhook{Version: "v1beta1", CacheTTL: 2 * time.Minute}},
			Authorization: assemble.Authorization{Webhook: assemble.AuthorizationWebhook{Version: "v1beta1",
				AuthorizedTTL: 5 * time.Minute, UnauthorizedTTL: 30 * time.Second}},
			NodePorts: utilnet.PortRange{Base: 30000, Size: 2768},
		},
		// Upstream's default is false. There a Service's address leads on by a kube-proxy on the server's host, which
		// need not be here.
		aggregatorRouting: true, rejectRedirects: true,
		audit:           auditDefaults(),
		notReadySeconds: defaulttolerationseconds.Default, unreachableSeconds: defaulttolerationseconds.Default,
		serviceRanges: "10.0.0.0/24", endpointReconciler: "lease",
		kubeletAddressTypes: []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"},
	}
}

// validate reports everything that is wrong with the flags at once.
func (o *options) validate() error {
	life := o.parts.Authentication.MaxTokenExpiration
	_, rangesError := o.ranges()
	checks := []error{
		daemon.Require(len(o.etcdServers) > 0, "--etcd-servers must be specified"),
		daemon.Require(o.encryptionConfig != "" || !o.encryptionReload,
			"--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"),
		daemon.Require(o.securePort >= 1 && o.securePort <= 65535,
			"--secure-port %v must be between 1 and 65535, inclusive. It cannot be turned off with 0", o.securePort),
		daemon.Require(len(o.parts.Authentication.Issuers) > 0, "--service-account-issuer is a required flag"),
		daemon.Require((o.tlsCert == "") == (o.tlsKey == ""),
			"--tls-cert-file and --tls-private-key-file must be given together"),
		daemon.Require((o.etcdCert == "") == (o.etcdKey == ""),
			"--etcd-certfile and --etcd-keyfile must be given together"),
		daemon.Require((o.aggregation.CertFile == "") == (o.aggregation.KeyFile == ""),
			"--proxy-client-cert-file and --proxy-client-key-file must be given together"),
		daemon.Require((o.parts.Kubelets.CertFile == "") == (o.parts.Kubelets.KeyFile == ""),
			"--kubelet-client-certificate and --kubelet-client-key must be given together"),
		daemon.Require(o.maxReading >= 0, "--max-requests-inflight can not be negative value"),
		daemon.Require(o.maxMutating >= 0, "--max-mutating-requests-inflight can not be negative value"),
		daemon.Require(!o.fairness || o.maxReading+o.maxMutating > 0,
			"--max-requests-inflight and --max-mutating-requests-inflight must add up to more than 0 with --enable-priority-and-fairness"),
		daemon.Require(o.notReadySeconds >= 0, "--default-not-ready-toleration-seconds can not be negative value"),
		daemon.Require(o.unreachableSeconds >= 0, "--default-unreachable-toleration-seconds can not be negative value"),
		daemon.Require(o.requestTimeout > 0, "--request-timeout can not be negative value"),
		daemon.Require(o.minRequestTimeout >= 0, "--min-request-timeout can not be negative value"),
		daemon.Require(o.shutdownDelay >= 0, "--shutdown-delay-duration can not be negative value"),
		daemon.Require(o.watchGrace >= 0,
			"shutdown-watch-termination-grace-period, if provided, can not be a negative value"),
		daemon.Require(o.livezGrace >= 0, "--livez-grace-period can not be a negative value"),
		daemon.Require(o.parts.Kubelets.MaxBytesPerSec >= 0,
			"--max-connection-bytes-per-sec can not be negative value"),
		o.validateBrowsers(), o.validateRuntime(), o.validateOverrides(),
		o.serving.Validate(), o.metrics.Validate(),
		daemon.Require(o.maxBodyValues > 0, "--max-request-body-values must be more than 0"),
		daemon.Require(o.goAwayChance >= 0 && o.goAwayChance <= 0.02,
			"--goaway-chance can not be less than 0 or greater than 0.02"),
		daemon.Require(life == 0 || life >= time.Hour && life <= 1<<32*time.Second,
			"the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"),
		o.validateIssuers(), o.validateOutside(),
		o.validateAuthorization(),
	}
	checks = append(checks,
		daemon.Require(slices.Contains(endpointReconcilers, o.endpointReconciler),
			"--endpoint-reconciler-type: %q is not one of %s",
			o.endpointReconciler, strings.Join(endpointReconcilers, ", ")),
		o.validateAdvertised(),
		rangesError,
	)
	checks = append(checks, o.validateAudit()...)
	checks = append(checks, assemble.CheckAdmission(o.parts.EnableAdmission, o.parts.DisableAdmission))
	return errors.Join(checks...)
}

// validateBrowsers reports what is wrong with the flags of what browsers may do.
func (o *options) validateBrowsers() error {
	var errs []error
	if _, err := apiserver.CompileOrigins(o.origins); err != nil {
		errs = append(errs, fmt.Errorf("--cors-allowed-origins has an invalid regular expression: %w, help: %s", err,
			originsHelp))
	}
	for _, directive := range o.strictTransport {
		seconds, isAge := strings.CutPrefix(directive, "max-age=")
		_, err := strconv.ParseUint(seconds, 10, 63)
		if directive != "includeSubDomains" && directive != "preload" && (!isAge || err != nil) {
			errs = append(errs, errors.New("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"))
			break
		}
	}
	return errors.Join(errs...)
}

// validateRuntime reports what is wrong with --runtime-config.
func (o *options) validateRuntime() error {
	config, err := runtimeconfig.Parse(o.runtimeConfig, rows.All())
	if err != nil {
		return err
	}
	off := config.FairnessOff(o.runtimeConfig)
	return daemon.Require(off == "" || !o.fairness,
		"--runtime-config=%s conflicts with --enable-priority-and-fairness=true", off)
}

// validateOverrides reports what is wrong with --etcd-servers-overrides.
func (o *options) validateOverrides() error {
	overrides, err := parseOverrides(o.etcdOverrides)
	if err != nil {
		return err
	}
	_, err = place(overrides, rows.All())
	return err
}

// validateIssuers reports what is wrong with the issuers of service account tokens.
func (o *options) validateIssuers() error {
	a := &o.parts.Authentication
	errs := []error{
		daemon.Require(a.SigningKey != "" || o.signingEndpoint != "",
			"--service-account-signing-key-file is a required flag, unless --service-account-signing-endpoint is given"),
		daemon.Require(a.SigningKey == "" || o.signingEndpoint == "",
			"service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and cannot be set at the same time"),
		daemon.Require(len(a.AccountKeys) == 0 || o.signingEndpoint == "",
			"can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)"),
	}
	for n, issuer := range a.Issuers {
		_, err := safetext.ParseURL(issuer)
		errs = append(errs, daemon.Require(issuer != "", "service-account-issuer should not be an empty string"),
			daemon.Require(!slices.Contains(a.Issuers[:n], issuer), "service-account-issuer %q is already specified",
				safetext.URL(issuer)),
			daemon.Require(err == nil || !strings.Contains(issuer, ":"),
				"service-account-issuer %q contained a ':' but was not a valid URL: %v", safetext.URL(issuer), err))
	}
	if a.JWKSURI != "" {
		at, err := safetext.ParseURL(a.JWKSURI)
		if err != nil {
			errs = append(errs, fmt.Errorf("service-account-jwks-uri must be a valid URL: %w", err))
		} else {
			errs = append(errs, daemon.Require(at.Scheme == "https",
				"service-account-jwks-uri requires https scheme, parsed as: %v", at.Redacted()))
		}
	}
	return errors.Join(errs...)
}

// validateOutside reports what is wrong with the flags of tokens that others issue.
func (o *options) validateOutside() error {
	a := &o.parts.Authentication
	return errors.Join(
		a.OIDC.Validate(),
		daemon.Require(a.ConfigFile == "" || !a.OIDC.Given(),
			"authentication-config file and oidc-* flags are mutually exclusive"),
		daemon.Require(slices.Contains(tokenreview.Versions(), a.Webhook.Version),
			"--authentication-token-webhook-version: %q is not one of %s", a.Webhook.Version,
			strings.Join(tokenreview.Versions(), ", ")),
		daemon.Require(a.Webhook.CacheTTL >= 0, "--authentication-token-webhook-cache-ttl can not be negative value"))
}

// endpointReconcilers are the values of --endpoint-reconciler-type. Upstream's deprecated master-count is not among
// them: it publishes the addresses of servers that have ended.
var endpointReconcilers = []string{"lease", "none"}

// ranges are those of --service-cluster-ip-range.
func (o *options) ranges() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for part := range strings.SplitSeq(o.serviceRanges, ",") {
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("--service-cluster-ip-range: %w", err)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// complete puts what the flags say in other words into the options of the parts.
func (o *options) complete() error {
	var err error
	if o.parts.ServiceRanges, err = o.ranges(); err != nil {
		return err
	}
	configured, err := assemble.LoadAdmissionConfiguration(o.admissionFile)
	if err != nil {
		return err
	}
	o.parts.Admission = *configured
	o.parts.NotReadySeconds, o.parts.UnreachableSeconds = &o.notReadySeconds, &o.unreachableSeconds
	for _, t := range o.kubeletAddressTypes {
		o.parts.Kubelets.AddressTypes = append(o.parts.Kubelets.AddressTypes, corev1.NodeAddressType(t))
	}
	o.aggregation.ByAddress, o.aggregation.FollowRedirects, o.aggregation.RequestHeader = !o.aggregatorRouting,
		!o.rejectRedirects, o.parts.Authentication.RequestHeader
	if o.fairness {
		o.parts.Fairness.Seats, o.parts.Fairness.RequestTimeout = o.maxReading+o.maxMutating, o.requestTimeout
	}
	o.parts.Advertise, o.parts.Port, o.parts.NoEndpoints = o.advertised(), o.securePort, o.endpointReconciler == "none"
	if o.parts.Hostname, err = os.Hostname(); err != nil {
		return fmt.Errorf("read the hostname: %w", err)
	}
	o.aggregation.Hostname = o.parts.Hostname
	if keys := &o.parts.Authentication.JWKSURI; *keys == "" && o.externalHostname != "" {
		*keys = "https://" + o.externalAddress() + serviceaccount.JWKSPath
	}
	return o.localNetworks()
}

// externalAddress is the host and port at which others reach the server by --external-hostname: with the secure port,
// unless the flag names another.
func (o *options) externalAddress() string {
	if _, _, err := net.SplitHostPort(o.externalHostname); err == nil {
		return o.externalHostname
	}
	return net.JoinHostPort(o.externalHostname, strconv.Itoa(o.securePort))
}

// localNetworksVariable lists files of network namespaces, with colons between them, whose addresses are this
// machine's: for a server that has a namespace of its own on a machine that it must not lead anybody to. It is no flag,
// as kube-apiserver of Kubernetes, started in place of this program, would not know it.
const localNetworksVariable = "BONSAI_LOCAL_NETWORKS"

func (o *options) localNetworks() error {
	files := filepath.SplitList(os.Getenv(localNetworksVariable))
	if err := egress.CheckNetworks(files); err != nil {
		return fmt.Errorf("%s: %w", localNetworksVariable, err)
	}
	o.parts.LocalNetworks, o.aggregation.LocalNetworks = files, files
	return nil
}

// validateAdvertised refuses an address that no endpoint of the Service kubernetes can have, in upstream's words, if
// this server keeps the endpoints. A server that is bound to loopback keeps none.
func (o *options) validateAdvertised() error {
	ip := o.advertised()
	given, err := netip.ParseAddr(o.advertiseAddress)
	bound := err != nil || given.IsUnspecified()
	if ip.IsUnspecified() || bound && ip.IsLoopback() || o.endpointReconciler == "none" {
		return nil
	}
	if errs := validate.EndpointAddress(ip.String(), ip.Unmap(), nil); len(errs) > 0 {
		return fmt.Errorf("cannot use public IP %s with endpoint reconciler: %w", ip, errs.ToAggregate())
	}
	return nil
}

// advertised is the address that pods and other servers reach this one at: the flag's, the bound one, or the host's
// own.
func (o *options) advertised() netip.Addr {
	for _, s := range []string{o.advertiseAddress, o.bindAddress} {
		if a, err := netip.ParseAddr(s); err == nil && !a.IsUnspecified() {
			return a
		}
	}
	if ip, err := utilnet.ResolveBindAddress(net.ParseIP(o.bindAddress)); err == nil {
		if a, ok := netip.AddrFromSlice(ip); ok {
			return a.Unmap()
		}
	}
	return netip.IPv4Unspecified()
}
