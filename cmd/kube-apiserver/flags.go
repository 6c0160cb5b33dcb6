package main

import (
	"github.com/spf13/pflag"
	flag "k8s.io/component-base/cli/flag"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiserver/assemble"
)

// addFlags registers upstream's flag names on o.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.metrics.AddFlags(fs)
	o.tracing.AddFlags(fs)
	o.storageFlags(fs)
	o.servingFlags(fs)
	o.serving.AddFlags(fs)
	o.profiling.AddFlags(fs)
	o.gates.AddFlag(fs)
	o.authenticationFlags(fs)
	o.outsideFlags(fs)
	o.authorizationFlags(fs)
	o.admissionFlags(fs)
	o.serviceFlags(fs)
	o.auditFlags(fs)
	accepted().AddFlags(fs)
	refused().AddFlags(fs)
}

func (o *options) storageFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.etcdServers, "etcd-servers", o.etcdServers,
		"List of etcd servers to connect with (scheme://ip:port), comma separated.")
	fs.StringSliceVar(&o.etcdOverrides, "etcd-servers-overrides", nil,
		"Per-resource etcd servers overrides, comma separated. The individual override format: group/resource#servers, where servers are URLs, semicolon separated; /resource is one of the core group, and group/* all of a group. Note that this applies only to resources compiled into this server binary, but neither to CustomResourceDefinitions nor to APIServices. e.g. \"/pods#http://etcd4:2379;http://etcd5:2379,/events#http://etcd6:2379\"")
	fs.StringVar(&o.etcdCA, "etcd-cafile", "", "SSL Certificate Authority file used to secure etcd communication.")
	fs.StringVar(&o.etcdCert, "etcd-certfile", "", "SSL certification file used to secure etcd communication.")
	fs.StringVar(&o.etcdKey, "etcd-keyfile", "", "SSL key file used to secure etcd communication.")
	fs.StringVar(&o.etcdPrefix, "etcd-prefix", o.etcdPrefix, "The prefix to prepend to all resource paths in etcd.")
	fs.DurationVar(&o.etcdCompaction, "etcd-compaction-interval", o.etcdCompaction,
		"The interval of compaction requests. If 0, the compaction request from apiserver is disabled.")
	fs.DurationVar(&o.etcdHealthTimeout, "etcd-healthcheck-timeout", o.etcdHealthTimeout,
		"The timeout to use when checking etcd health.")
	fs.DurationVar(&o.etcdReadyTimeout, "etcd-readycheck-timeout", o.etcdReadyTimeout,
		"The timeout to use when checking etcd readiness.")
	fs.BoolVar(&o.collectGarbage, "enable-garbage-collector", o.collectGarbage,
		"Let deletions wait for the garbage collector to orphan or to delete dependents first. It must be set like the flag of the same name of kube-controller-manager.")
	fs.StringVar(&o.encryptionConfig, "encryption-provider-config", "",
		"The file containing configuration for encryption providers to be used for storing secrets in etcd.")
	fs.BoolVar(&o.encryptionReload, "encryption-provider-config-automatic-reload", false,
		"Determines if the file set by --encryption-provider-config should be automatically reloaded if the disk contents change. Setting this to true disables the ability to uniquely identify distinct KMS plugins via the API server healthz endpoints.")
	fs.StringVar(&o.egressSelectorFile, "egress-selector-config-file", "",
		"File with apiserver egress selector configuration.")
	fs.DurationVar(&o.eventTTL, "event-ttl", o.eventTTL, "Amount of time to retain events.")
}

func (o *options) servingFlags(fs *pflag.FlagSet) {
	daemon.AddressVar(fs, &o.bindAddress, "bind-address", o.bindAddress,
		"The IP address on which to listen for the --secure-port port.")
	daemon.AddressVar(fs, &o.advertiseAddress, "advertise-address", "",
		"The IP address on which to advertise the apiserver to members of the cluster. If blank, the --bind-address will be used, or the host's default interface if that is unspecified.")
	fs.StringVar(&o.externalHostname, "external-hostname", "",
		"The host, or host:port, at which the OpenID configuration (/.well-known/openid-configuration) names the keys of service account tokens. Default: the advertised address.")
	fs.IntVar(&o.securePort, "secure-port", o.securePort,
		"The port on which to serve HTTPS with authentication and authorization.")
	fs.StringVar(&o.tlsCert, "tls-cert-file", "",
		"File containing the x509 Certificate for HTTPS. If not provided, a self-signed certificate and key are generated and saved to the directory specified by --cert-dir.")
	fs.StringVar(&o.tlsKey, "tls-private-key-file", "",
		"File containing the x509 private key matching --tls-cert-file.")
	fs.StringVar(&o.certDir, "cert-dir", o.certDir,
		"The directory where the TLS certs are located. If --tls-cert-file and --tls-private-key-file are provided, this flag will be ignored.")
	fs.BoolVar(&o.fairness, "enable-priority-and-fairness", o.fairness,
		"If true, queue and dispatch requests with priority and fairness; false: bound those in flight, reading and mutating ones, with a short wait.")
	fs.IntVar(&o.maxReading, "max-requests-inflight", o.maxReading,
		"This and --max-mutating-requests-inflight are summed to determine the server's total concurrency limit (which must be positive) if --enable-priority-and-fairness is true. Otherwise, this flag limits the maximum number of non-mutating requests in flight, or a zero value disables the limit completely.")
	fs.IntVar(&o.maxMutating, "max-mutating-requests-inflight", o.maxMutating,
		"This and --max-requests-inflight are summed to determine the server's total concurrency limit (which must be positive) if --enable-priority-and-fairness is true. Otherwise, this flag limits the maximum number of mutating requests in flight, or a zero value disables the limit completely.")
	fs.DurationVar(&o.requestTimeout, "request-timeout", o.requestTimeout,
		"The duration a handler must keep a request open before timing it out. Not for watches and streams.")
	fs.IntVar(&o.minRequestTimeout, "min-request-timeout", o.minRequestTimeout,
		"The minimum number of seconds a watch is kept open before timing it out; each gets a random time above it.")
	fs.DurationVar(&o.shutdownDelay, "shutdown-delay-duration", 0,
		"Time to delay the termination; meanwhile the server keeps serving while /readyz fails.")
	fs.Var(flag.NewMapStringString(&o.runtimeConfig), "runtime-config",
		"A set of key=value pairs that enable or disable built-in APIs: v1=true|false for the core API group, <group>/<version>=true|false and <group>/<version>/<resource>=true|false, api/all, api/ga and api/beta and api/alpha for classes of versions. The server itself still reads what is disabled.")
	fs.BoolVar(&o.sendRetryAfter, "shutdown-send-retry-after", false,
		"If true, the server listens after --shutdown-delay-duration until the requests under way that are no watches or streams have been answered. Meanwhile new ones get 429 with 'Retry-After', and their connections close.")
	fs.DurationVar(&o.watchGrace, "shutdown-watch-termination-grace-period", 0,
		"The time over which watches end after --shutdown-delay-duration, one after the other. Default: all at once.")
	fs.DurationVar(&o.livezGrace, "livez-grace-period", 0,
		"The maximum time that the start should take. Until it has passed, /livez takes it that unfinished start hooks will succeed.")
	fs.StringSliceVar(&o.origins, "cors-allowed-origins", nil, originsHelp)
	fs.StringSliceVar(&o.strictTransport, "strict-transport-security-directives", nil,
		"List of directives for HSTS, comma separated. If this list is empty, then HSTS directives will not be added. Example: 'max-age=31536000,includeSubDomains,preload'")
	fs.Int64Var(&o.parts.Kubelets.MaxBytesPerSec, "max-connection-bytes-per-sec", 0,
		"If non-zero, throttle each upgraded connection (exec, attach, port-forward, proxies) to this number of bytes/sec.")
	fs.IntVar(&o.maxBodyValues, "max-request-body-values", o.maxBodyValues,
		"The most JSON, YAML or protobuf values (objects, lists and scalars) that the body of a request may have; each may cost a kilobyte of memory. Bonsai's own flag.")
	fs.Float64Var(&o.goAwayChance, "goaway-chance", 0,
		"Probability of closing a connection of an HTTP/2 client gracefully, to make it connect to another server. Max is 0.02.")
}

func (o *options) authenticationFlags(fs *pflag.FlagSet) {
	a := &o.parts.Authentication
	h := &a.RequestHeader
	fs.StringVar(&a.ClientCA, "client-ca-file", "",
		"If set, any request presenting a client certificate signed by one of the authorities in the client-ca-file is authenticated with the identity of its CommonName.")
	fs.StringVar(&a.TokenFile, "token-auth-file", "",
		"If set, the file that will be used to secure the secure port of the API server via token authentication.")
	fs.BoolVar(&a.BootstrapTokens, "enable-bootstrap-token-auth", false,
		"Enable to allow secrets of type 'bootstrap.kubernetes.io/token' in the 'kube-system' namespace to be used for TLS bootstrapping authentication.")
	fs.BoolVar(&a.Anonymous, "anonymous-auth", a.Anonymous,
		"Lets requests without credentials reach health and version paths, and with --enable-bootstrap-token-auth the ConfigMap cluster-info, as system:anonymous; everything else always needs a credential.")
	fs.StringSliceVar(&a.Issuers, "service-account-issuer", nil,
		"Identifier of the service account token issuer. The first is used for new tokens, all are accepted.")
	fs.StringArrayVar(&a.AccountKeys, "service-account-key-file", nil,
		"File with PEM-encoded RSA or ECDSA keys, used to verify service account tokens. Can be given several times. Default: the key of --service-account-signing-key-file.")
	fs.StringVar(&a.SigningKey, "service-account-signing-key-file", "",
		"Path to the file with the private key that signs service account tokens.")
	fs.StringVar(&o.signingEndpoint, "service-account-signing-endpoint", "",
		"Path of the Unix socket at which a process listens that signs service account tokens and knows the keys that verify them; @NAME is an abstract socket. Not together with --service-account-signing-key-file or --service-account-key-file.")
	fs.StringSliceVar(&a.Audiences, "api-audiences", nil, "Identifiers of the API. Default: the first issuer.")
	fs.StringVar(&a.JWKSURI, "service-account-jwks-uri", "",
		"Overrides the URI for the JSON Web Key Set in the discovery doc served at /.well-known/openid-configuration.")
	fs.BoolVar(&a.AccountLookup, "service-account-lookup", a.AccountLookup,
		"If true, validate that the objects a service account token is bound to exist.")
	fs.BoolVar(&a.ExtendTokens, "service-account-extend-token-expiration", a.ExtendTokens,
		"Lets pods' tokens for the API server live longer than their stated expiration.")
	fs.DurationVar(&a.MaxTokenExpiration, "service-account-max-token-expiration", 0,
		"The maximum validity duration of a token created by the service account token issuer.")
	fs.StringVar(&h.CA, "requestheader-client-ca-file", "",
		"Root certificate bundle to verify client certificates of front proxies before trusting usernames in headers.")
	fs.StringSliceVar(&h.AllowedNames, "requestheader-allowed-names", nil,
		"List of client certificate common names to allow to provide usernames in headers. If empty, any name is allowed.")
	fs.StringSliceVar(&h.Usernames, "requestheader-username-headers", h.Usernames,
		"List of request headers to inspect for usernames.")
	fs.StringSliceVar(&h.UIDs, "requestheader-uid-headers", h.UIDs, "List of request headers to inspect for UIDs.")
	fs.StringSliceVar(&h.Groups, "requestheader-group-headers", h.Groups,
		"List of request headers to inspect for groups.")
	fs.StringVar(&o.aggregation.CertFile, "proxy-client-cert-file", "",
		"Client certificate by which this server proves to aggregated API servers that it is the one that names the user in a request's headers.")
	fs.StringVar(&o.aggregation.KeyFile, "proxy-client-key-file", "", "Private key of --proxy-client-cert-file.")
	fs.BoolVar(&o.aggregatorRouting, "enable-aggregator-routing", o.aggregatorRouting,
		"Send requests for aggregated API servers to the endpoints of their Service; false: to its cluster IP, which takes a kube-proxy on this host.")
	fs.BoolVar(&o.rejectRedirects, "aggregator-reject-forwarding-redirect", o.rejectRedirects,
		"Do not forward redirects of aggregated API servers to clients.")
	fs.StringSliceVar(&h.ExtraHeaderPrefixes, "requestheader-extra-headers-prefix", h.ExtraHeaderPrefixes,
		"List of request header prefixes to inspect.")
}

// outsideFlags are those of tokens that others issue.
func (o *options) outsideFlags(fs *pflag.FlagSet) {
	a := &o.parts.Authentication
	i, w := &a.OIDC, &a.Webhook
	fs.StringVar(&a.ConfigFile, "authentication-config", "",
		"File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1): the issuers whose JSON web tokens are accepted, and the paths that are open without credentials. It is read again when it changes. Not together with an --oidc-* flag.")
	fs.StringVar(&i.IssuerURL, "oidc-issuer-url", "",
		"The URL of the OpenID issuer, only the HTTPS scheme is accepted. If set, it is used to verify the OIDC JSON Web Tokens (JWT).")
	fs.StringVar(&i.ClientID, "oidc-client-id", "",
		"The client ID for the OpenID Connect client, must be set if oidc-issuer-url is set.")
	fs.StringVar(&i.CAFile, "oidc-ca-file", "",
		"If set, the OpenID server's certificate is verified by one of the authorities in the file, otherwise by the host's.")
	fs.StringVar(&i.UsernameClaim, "oidc-username-claim", i.UsernameClaim,
		"The OpenID claim to use as the user name. Claims other than the default are not guaranteed to be unique and immutable.")
	fs.StringVar(&i.UsernamePrefix, "oidc-username-prefix", "",
		"If provided, all usernames are prefixed with this value. If not, those of claims other than 'email' are prefixed by the issuer URL and '#'. To skip any prefixing, provide the value '-'.")
	fs.StringVar(&i.GroupsClaim, "oidc-groups-claim", "",
		"If provided, the name of a custom OpenID Connect claim for specifying user groups: a string or an array of strings.")
	fs.StringVar(&i.GroupsPrefix, "oidc-groups-prefix", "",
		"If provided, all groups are prefixed with this value to prevent conflicts with other authentication strategies.")
	fs.StringSliceVar(&i.SigningAlgs, "oidc-signing-algs", i.SigningAlgs,
		"Comma-separated list of allowed JOSE asymmetric signing algorithms. JWTs with an 'alg' header value not in this list are rejected. Values: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.")
	fs.StringToStringVar(&i.RequiredClaims, "oidc-required-claim", nil,
		"A key=value pair that describes a required claim in the ID Token. If set, the claim is verified to be present in the ID Token with a matching value. Repeat this flag to specify multiple claims.")
	fs.StringVar(&w.ConfigFile, "authentication-token-webhook-config-file", "",
		"File with webhook configuration for token authentication in kubeconfig format. The API server will query the remote service to determine authentication for bearer tokens.")
	fs.StringVar(&w.Version, "authentication-token-webhook-version", w.Version,
		"The API version of the authentication.k8s.io TokenReview to send to and expect from the webhook.")
	fs.DurationVar(&w.CacheTTL, "authentication-token-webhook-cache-ttl", w.CacheTTL,
		"The duration to cache responses from the webhook token authenticator.")
}

func (o *options) admissionFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.allowPrivileged, "allow-privileged", false, "If true, allow privileged containers.")
	fs.StringSliceVar(&o.parts.EnableAdmission, "enable-admission-plugins", nil, assemble.AdmissionUsage(
		"admission plugins that should be enabled in addition to default enabled ones"))
	fs.Int64Var(&o.notReadySeconds, "default-not-ready-toleration-seconds", o.notReadySeconds,
		"Indicates the tolerationSeconds of the toleration for notReady:NoExecute that is added by default to every pod that does not already have such a toleration.")
	fs.Int64Var(&o.unreachableSeconds, "default-unreachable-toleration-seconds", o.unreachableSeconds,
		"Indicates the tolerationSeconds of the toleration for unreachable:NoExecute that is added by default to every pod that does not already have such a toleration.")
	fs.StringVar(&o.admissionFile, "admission-control-config-file", "", "File with admission control configuration.")
	fs.StringSliceVar(&o.parts.DisableAdmission, "disable-admission-plugins", nil, assemble.AdmissionUsage(
		"admission plugins that should be disabled although they are in the default enabled plugins list"))
}

func (o *options) serviceFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.endpointReconciler, "endpoint-reconciler-type", o.endpointReconciler,
		"Who keeps the endpoints of the Service kubernetes: lease, all API servers on one etcd for those that are alive; none, nobody.")
	fs.StringVar(&o.serviceRanges, "service-cluster-ip-range", o.serviceRanges,
		"A CIDR notation IP range from which to assign service cluster IPs.")
	fs.Var(&o.parts.NodePorts, "service-node-port-range",
		"A port range to reserve for services with NodePort visibility. Inclusive at both ends of the range.")
	fs.StringVar(&o.parts.Kubelets.CertFile, "kubelet-client-certificate", "",
		"Path to a client cert file for TLS towards kubelets.")
	fs.StringVar(&o.parts.Kubelets.KeyFile, "kubelet-client-key", "",
		"Path to a client key file for TLS towards kubelets.")
	fs.StringVar(&o.parts.Kubelets.CAFile, "kubelet-certificate-authority", "",
		"Path to a cert file for the certificate authority of kubelets.")
	fs.StringSliceVar(&o.kubeletAddressTypes, "kubelet-preferred-address-types", o.kubeletAddressTypes,
		"List of the preferred NodeAddressTypes to use for kubelet connections.")
}

const originsHelp = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'"

// accepted are flags that have no effect here, because what they choose is how this server works anyway, or only how
// fast or how often.
func accepted() daemon.AcceptedFlags {
	return daemon.AcceptedFlags{
		{Why: "there is no cloud provider in the server; other values than external are refused",
			Strings: []string{"cloud-provider"}},
		{Why: "objects are stored as protobuf where their kind has it, and as JSON otherwise",
			Strings: []string{"storage-media-type"}},
		{Why: "profiles are served on the secure port alone", Strings: []string{"debug-socket-path"}},
		{Why: "API servers send no requests on to each other",
			Strings: []string{"peer-advertise-ip", "peer-advertise-port"}},
		{Why: "every listening socket has SO_REUSEADDR, as Go sets it", Bools: []string{"permit-address-sharing"}},
		{Why: "every resource has a watch cache, which is bounded in bytes",
			Bools: []string{"watch-cache"}, Ints: []string{"default-watch-cache-size"},
			Lists: []string{"watch-cache-sizes"}},
		{Why: "no other version is emulated",
			Bools: []string{"emulation-forward-compatible", "runtime-config-emulation-forward-compatible"}},
		{Why: "leases in etcd name the API servers that are alive", Ints: []string{"apiserver-count"}},
		{Why: "eight objects of a collection are deleted at a time", Ints: []string{"delete-collection-workers"}},
		{Why: "a lease of etcd takes new keys for a twentieth of their time to live, from 1s to 1m",
			Ints: []string{"lease-reuse-duration-seconds"}},
		{Why: "the Service kubernetes has no node port", Ints: []string{"kubernetes-service-node-port"}},
		{Why: "the kubelet's port is that of its Node object", Uints: []string{"kubelet-port"}},
		{Why: "opening a connection to a kubelet may take 30s, and TLS 10s; then a stream lasts as long as its client",
			Durations: []string{"kubelet-timeout"}},
		{Why: "there are no metrics of the number of objects in etcd, nor of the size of its database",
			Durations: []string{"etcd-count-metric-poll-period", "etcd-db-metric-poll-interval"}},
		{Why: "coordinated leader election is off by default, and not built",
			Durations: []string{"coordinated-leadership-lease-duration", "coordinated-leadership-renew-deadline",
				"coordinated-leadership-retry-period"}},
		{Why: "the start waits ten seconds for the first answer of etcd, and ends with an error if there is none",
			Durations: []string{"storage-initialization-timeout"}},
		daemon.AcceptedVersions(),
	}
}

// refused are flags that protect, or choose what is served, and that are not built.
func refused() daemon.Refused {
	return daemon.Refused{
		{Name: "admission-control", Would: "replace the list of admission plug-ins (use --enable-admission-plugins)"},
		{Name: "enable-logs-handler", Would: "serve the files of /var/log", Usual: []string{"false"}, Switch: true},
		{Name: "emulated-version", Would: "serve the APIs and features of another version",
			Usual: []string{kubeversion.API, "kube=" + kubeversion.API}},
		{Name: "peer-ca-file", Would: "verify other API servers before requests are sent on to them", File: true},
		{Name: "storage-backend", Would: "store objects elsewhere than in etcd v3", Usual: []string{"etcd3"}},
	}
}
