// Package proxy serves the API server on a local port, with the user's credentials and a filter on who may ask for
// what.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
)

// Options is one run of proxy.
type Options struct {
	cli.IOStreams
	port             int
	address          string
	socket           string
	prefix           string
	www, wwwPrefix   string
	filter           filterFlags
	disableFilter    bool
	keepalive        time.Duration
	appendServerPath bool
	config           *rest.Config
}

// NewCommand returns "kubectl proxy".
func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command {
	o := &Options{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "proxy [--port=PORT] [--www=static-dir] [--www-prefix=prefix] [--api-prefix=prefix]",
		Short: "Run a proxy to the Kubernetes API server",
		Long: "Create a proxy server or application-level gateway between localhost and the Kubernetes API server. Requests are sent on with " +
			"your credentials, so that only the paths and hosts that the filters accept can be asked for.",
		Example: `
# Proxy all of the Kubernetes API and nothing else
kubectl proxy --api-prefix=/

# Run a proxy to the API server on an arbitrary local port; the chosen port is printed
kubectl proxy --port=0

# Proxy the API on a unix socket
kubectl proxy --unix-socket=/tmp/kubectl.sock`,
		RunE: cli.RunE(f, o),
	}
	fs := cmd.Flags()
	fs.IntVarP(&o.port, "port", "p", 8001, "The port on which to run the proxy. Set to 0 to pick a random port.")
	fs.StringVar(&o.address, "address", "127.0.0.1", "The IP address on which to serve on.")
	fs.StringVarP(&o.socket, "unix-socket", "u", "", "Unix socket on which to run the proxy.")
	fs.StringVar(&o.prefix, "api-prefix", "/", "Prefix to serve the proxied API under.")
	fs.StringVarP(&o.www, "www", "w", "",
		"Also serve static files from the given directory under the specified prefix.")
	fs.StringVarP(&o.wwwPrefix, "www-prefix", "P", "/static/",
		"Prefix to serve static files under, if static file directory is specified.")
	fs.DurationVar(&o.keepalive, "keepalive", 0,
		"keepalive specifies the keep-alive period for an active network connection. Set to 0 to disable keepalive.")
	fs.BoolVar(&o.appendServerPath, "append-server-path", false,
		"If true, enables automatic path appending of the kube context server path to each request.")
	fs.BoolVar(&o.disableFilter, "disable-filter", false,
		"If true, disable request filtering in the proxy. This is dangerous, and can leave you vulnerable to XSRF attacks, when used with an accessible port.")
	o.filter.add(fs)
	return cmd
}

// Complete implements cli.Options.
func (o *Options) Complete(f *cli.Factory, cmd *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		return cli.UsageErrorf(cmd, "unexpected arguments: %v", args)
	}
	if o.socket != "" && (cmd.Flags().Changed("port") || cmd.Flags().Changed("address")) {
		return errors.New("cannot set --unix-socket and --port or --address at the same time")
	}
	o.prefix, o.wwwPrefix = slashed(o.prefix), slashed(o.wwwPrefix)
	o.config, err = f.RESTConfig()
	return err
}

// slashed is a prefix with a slash at both ends.
func slashed(prefix string) string {
	return "/" + strings.TrimPrefix(strings.TrimSuffix(prefix, "/")+"/", "/")
}

// Validate implements cli.Options.
func (o *Options) Validate() error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port must be between 0 and 65535, not %d", o.port)
	}
	if o.www == "" {
		return nil
	}
	info, err := os.Stat(o.www)
	if err != nil {
		return fmt.Errorf("--www: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--www: %s is not a directory", o.www)
	}
	return nil
}

// Run implements cli.Options. It serves until ctx ends and returns why.
func (o *Options) Run(ctx context.Context) error {
	handler, err := o.newHandler()
	if err != nil {
		return err
	}
	listener, err := o.listen(ctx)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	fmt.Fprintf(o.Out, "Starting to serve on %s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

func (o *Options) listen(ctx context.Context) (net.Listener, error) {
	keepalive := o.keepalive
	if keepalive == 0 {
		keepalive = -1 // net's word for none
	}
	c := net.ListenConfig{KeepAlive: keepalive}
	if o.socket == "" {
		return c.Listen(ctx, "tcp", net.JoinHostPort(o.address, strconv.Itoa(o.port)))
	}
	// A socket that an earlier proxy left behind may be replaced, another file may not.
	if info, err := os.Lstat(o.socket); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(o.socket); err != nil {
			return nil, err
		}
	}
	return c.Listen(ctx, "unix", o.socket)
}

// newHandler serves the API below the API prefix and the static files, if any, below theirs, behind the filter.
func (o *Options) newHandler() (http.Handler, error) {
	target, _, err := rest.DefaultServerUrlFor(o.config)
	if err != nil {
		return nil, fmt.Errorf("the address of the API server: %w", err)
	}
	base := &url.URL{Scheme: target.Scheme, Host: target.Host}
	if o.appendServerPath {
		base.Path = strings.TrimSuffix(target.Path, "/")
	}
	forward, err := newForwarder(base, o.config)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(o.prefix, http.StripPrefix(strings.TrimSuffix(o.prefix, "/"), forward))
	if o.www != "" {
		mux.Handle(o.wwwPrefix, http.StripPrefix(o.wwwPrefix, http.FileServer(http.Dir(o.www))))
	}
	if o.disableFilter {
		if o.socket == "" {
			fmt.Fprintln(o.ErrOut, "Request filter disabled, your proxy is vulnerable to XSRF attacks, please be cautious")
		}
		return mux, nil
	}
	return o.filter.wrap(mux)
}
