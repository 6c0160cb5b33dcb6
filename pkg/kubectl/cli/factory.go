package cli

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/disk"
	"k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // OpenID Connect, and what to use instead of providers that are no more
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/trace/traceparent"
)

// discoveryTTL is how long the discovery cache on disk is trusted.
const discoveryTTL = 6 * time.Hour

// Factory makes clients from the kubeconfig and the global flags, each once and when first asked for. Use it from one
// goroutine.
type Factory struct {
	// Version is kubectl's own version, "v1.36.3+bonsai".
	Version string
	// Command is the command that runs, "kubectl create configmap", set before the first request.
	Command string
	// StdinTaken is set before the first request if the command reads objects from standard input: a credential plug-in
	// cannot then.
	StdinTaken bool
	// Plugins says which credential plug-ins may run.
	Plugins clientcmdapi.PluginPolicy

	streams IOStreams
	flags   globals
	// warnings counts what the server warned of; nil before the first request.
	warnings interface{ WarningCount() int }

	client    func() (clientcmd.ClientConfig, error)
	rest      func() (*rest.Config, error)
	discovery func() (discovery.CachedDiscoveryInterface, error)
	mapper    func() (meta.ResettableRESTMapper, error)
	resources func() (*resource.Client, error)
}

// NewFactory returns a factory whose warnings go to streams.ErrOut. Its flags must be added and parsed before its first
// use.
func NewFactory(version string, streams IOStreams) *Factory {
	f := &Factory{Version: version, streams: streams}
	f.client = sync.OnceValues(f.newClientConfig)
	f.rest = sync.OnceValues(f.newRESTConfig)
	f.discovery = sync.OnceValues(f.newDiscovery)
	f.mapper = sync.OnceValues(f.newMapper)
	f.resources = sync.OnceValues(f.newResources)
	return f
}

// Warned serves --warnings-as-errors: with it, it is an error if the server warned of anything.
func (f *Factory) Warned() error {
	if !f.flags.warningsAsErrors || f.warnings == nil {
		return nil
	}
	switch n := f.warnings.WarningCount(); n {
	case 0:
		return nil
	case 1:
		return errors.New("1 warning received")
	default:
		return fmt.Errorf("%d warnings received", n)
	}
}

// ClientConfig is the merged kubeconfig with the flags over it.
func (f *Factory) ClientConfig() (clientcmd.ClientConfig, error) { return f.client() }

// LoadingRules say where the kubeconfig is read from and written to: --kubeconfig, $KUBECONFIG, ~/.kube/config.
func (f *Factory) LoadingRules() Kubeconfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.flags.kubeconfig
	// A configuration that says no more than this one gives way to that of the pod that kubectl runs in.
	rules.DefaultClientConfig = clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(),
		&clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults})
	return Kubeconfig{rules}
}

// RESTConfig is a copy of the configuration of requests to the server; the caller may change it.
func (f *Factory) RESTConfig() (*rest.Config, error) {
	c, err := f.rest()
	if err != nil {
		return nil, err
	}
	return rest.CopyConfig(c), nil
}

// Namespace is the namespace of the request, and whether the user named it with -n.
func (f *Factory) Namespace() (string, bool, error) {
	c, err := f.client()
	if err != nil {
		return "", false, err
	}
	ns, _, err := c.Namespace()
	return ns, f.flags.namespace != "", err
}

// Discovery is the client of the server's list of resources, cached on disk.
func (f *Factory) Discovery() (discovery.CachedDiscoveryInterface, error) { return f.discovery() }

// Mapper knows the server's kinds and resources, their short names included.
func (f *Factory) Mapper() (meta.ResettableRESTMapper, error) { return f.mapper() }

// Resources reads and writes objects of any kind.
func (f *Factory) Resources() (*resource.Client, error) { return f.resources() }

// Dynamic is client-go's dynamic client, for watches and informers of any kind.
func (f *Factory) Dynamic() (dynamic.Interface, error) {
	c, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(c)
}

func (f *Factory) newClientConfig() (clientcmd.ClientConfig, error) {
	o, err := f.overrides()
	if err != nil {
		return nil, err
	}
	return clientcmd.NewInteractiveDeferredLoadingClientConfig(f.LoadingRules(), o, f.streams.In), nil
}

func (f *Factory) newRESTConfig() (*rest.Config, error) {
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	cfg, err := c.ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = fmt.Sprintf("kubectl/%s (%s/%s)", f.Version, runtime.GOOS, runtime.GOARCH)
	if cfg.ExecProvider != nil {
		cfg.ExecProvider.PluginPolicy = f.Plugins
	}
	if f.StdinTaken && cfg.ExecProvider != nil {
		cfg.ExecProvider.StdinUnavailable, cfg.ExecProvider.StdinUnavailableMessage = true,
			"used by stdin resource manifest reader"
	}
	cfg.QPS, cfg.Burst = -1, 0 // the server protects itself
	colour := false
	errOut := f.streams.Raw().ErrOut // the colour must arrive; the text is escaped
	if file, ok := errOut.(*os.File); ok {
		colour = term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""
	}
	warnings := rest.NewWarningWriter(errOut, rest.WarningWriterOptions{Deduplicate: true, Color: colour})
	cfg.WarningHandler, f.warnings = escapedWarnings{warnings}, warnings
	session := string(uuid.NewUUID())
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &traced{next, f.Command, session} })
	if f.flags.matchVersion {
		return cfg, f.checkVersion(cfg)
	}
	return cfg, nil
}

// escapedWarnings passes the server's warnings on without control characters.
type escapedWarnings struct{ next rest.WarningHandler }

func (w escapedWarnings) HandleWarningHeader(code int, agent, text string) {
	w.next.HandleWarningHeader(code, agent, printers.Escape(text))
}

// checkVersion serves --match-server-version.
func (f *Factory) checkVersion(cfg *rest.Config) error {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	v, err := d.ServerVersion()
	if err != nil {
		return err
	}
	if v.GitVersion != f.Version {
		return fmt.Errorf("server version (%s) differs from client version (%s)", v.GitVersion, f.Version)
	}
	return nil
}

// unsafePath is what a host name must not bring into a path.
var unsafePath = regexp.MustCompile(`[^A-Za-z0-9/.]`)

func (f *Factory) newDiscovery() (discovery.CachedDiscoveryInterface, error) {
	cfg, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	host := strings.TrimPrefix(strings.TrimPrefix(cfg.Host, "https://"), "http://")
	cache := f.flags.cacheDir
	if cache == "" { // as good as not said
		cache = defaultCacheDir()
	}
	dir := filepath.Join(cache, "discovery", filepath.Clean("/"+unsafePath.ReplaceAllString(host, "_")))
	onDisk, err := disk.NewCachedDiscoveryClientForConfig(cfg, dir, filepath.Join(cache, "http"), discoveryTTL)
	if err != nil {
		return nil, err
	}
	return &readOnce{CachedDiscoveryInterface: &contained{onDisk}}, nil
}

func (f *Factory) newMapper() (meta.ResettableRESTMapper, error) {
	d, err := f.discovery()
	if err != nil {
		return nil, err
	}
	warn := func(s string) { fmt.Fprintf(f.streams.ErrOut, "Warning: %s\n", s) }
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(d)
	return &mapper{restmapper.NewShortcutExpander(deferred, d, warn), deferred}, nil
}

// mapper expands short names, and can forget what it learned from the server.
type mapper struct {
	meta.RESTMapper
	deferred *restmapper.DeferredDiscoveryRESTMapper
}

// Reset forgets the discovery cache.
func (m *mapper) Reset() { m.deferred.Reset() }

func (f *Factory) newResources() (*resource.Client, error) {
	cfg, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	m, err := f.mapper()
	if err != nil {
		return nil, err
	}
	d, err := f.discovery()
	if err != nil {
		return nil, err
	}
	return resource.NewClient(cfg, m, restmapper.NewDiscoveryCategoryExpander(d), f.streams.In)
}

// traced says in every request which command of kubectl it serves and which run of it, for those who read the server's
// log, and gives every write a trace context of its own, from which the components tell the object's story.
type traced struct {
	next             http.RoundTripper
	command, session string
}

func (t *traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Kubectl-Command", t.command)
	r.Header.Set("Kubectl-Session", t.session)
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		r.Header.Set(traceparent.Header, traceparent.New())
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper returns the transport below.
func (t *traced) WrappedRoundTripper() http.RoundTripper { return t.next }

// parseUserExtra reads the KEY=VALUE pairs of --as-user-extra; a key may come several times.
func parseUserExtra(pairs []string) (map[string][]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := map[string][]string{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("invalid --as-user-extra %q, must be KEY=VALUE", p)
		}
		out[k] = append(out[k], v)
	}
	return out, nil
}
