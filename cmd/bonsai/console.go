package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/console"
	"bonsai/pkg/console/page"
	"bonsai/pkg/safetext"
)

// consoleOptions are the flags of `bonsai console`.
type consoleOptions struct {
	port                uint16
	kubeconfig, context string
}

func consoleCommand() *cobra.Command {
	o := &consoleOptions{}
	c := &cobra.Command{
		Use:   "console",
		Short: "Show a cluster in the browser while the command runs, with the rights of a kubeconfig",
		Long: "Show a cluster in the browser while the command runs: nodes and pods, workloads, Services, events, " +
			"logs, and why\n" +
			"something is as it is. It works with any cluster, sees and does what the user of the kubeconfig may, " +
			"and answers\n" +
			"only on this machine, to whoever has the link that it prints.",
		Example: "  bonsai console\n  bonsai console --context bonsai-dev --port 8001",
		Args:    daemon.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	c.Flags().Uint16Var(&o.port, "port", 0, "port on 127.0.0.1; 0 chooses a free one")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig to use; like kubectl, $KUBECONFIG or ~/.kube/config if it is empty")
	c.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig; its current one if it is empty")
	return c
}

func (o *consoleOptions) run(cmd *cobra.Command) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.UserAgent = "bonsai-console"
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	upstream, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("read the kubeconfig's server: %w", safetext.URLError(err))
	}
	files, err := page.Files()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	defer listener.Close()
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	token, host := console.NewToken(), strings.TrimSuffix(listener.Addr().String(), ":80") // as browsers write it
	handler, err := console.New(console.Config{Upstream: upstream, Transport: transport, Host: host, Token: token,
		Page: files,
		Ask:  o.ask, Log: log})
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Open http://%s/#%s\nThe link is valid until this command ends. Press "+
		"Ctrl-C to end it.\n",
		host, fragment(token, namespace))
	return serveUntil(cmd.Context(), &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}, listener)
}

// fragment is what the page learns from its link: the token, and the namespace of the kubeconfig, in which a user looks
// who may not list others.
func fragment(token, namespace string) string {
	if namespace == metav1.NamespaceDefault {
		return "token=" + token
	}
	return "token=" + token + "&namespace=" + url.QueryEscape(namespace)
}

// serveUntil serves until ctx ends. Watches have no end of their own, so that nothing is waited for.
func serveUntil(ctx context.Context, s *http.Server, l net.Listener) error {
	s.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// maxAnswer is the most that an explanation may have, in bytes.
const maxAnswer = 8 << 20

// askEnd is how long the output of an explanation is waited for after its process.
const askEnd = time.Second

// ask runs kubectl-why or kubectl-trace, which lie beside this program or on the PATH.
func (o *consoleOptions) ask(ctx context.Context, program string, args []string) ([]byte, error) {
	path, err := beside("kubectl-" + program)
	if err != nil {
		return nil, err
	}
	if o.kubeconfig != "" {
		args = append(args, "--kubeconfig", o.kubeconfig)
	}
	if o.context != "" {
		args = append(args, "--context", o.context)
	}
	out, errOut := &bounded{most: maxAnswer}, &bounded{most: safetext.MaxError}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = out, errOut
	// The program may run another one for its credentials, which survives it and keeps its stderr open.
	cmd.WaitDelay = askEnd
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the program itself has ended well
		err = nil
	}
	switch {
	case out.cut:
		return nil, fmt.Errorf("%s: the answer has more than %d MiB", filepath.Base(path), maxAnswer>>20)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s took too long", filepath.Base(path))
	case err != nil && errOut.text.Len() > 0:
		return nil, errors.New(errOut.text.String())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return out.text.Bytes(), nil
}

// beside returns the path of a program that is installed with this one.
func beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if path := filepath.Join(filepath.Dir(self), name); executable(path) {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside bonsai nor on the PATH", name)
	}
	return path, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	text bytes.Buffer
	most int
	cut  bool
}

// Write implements io.Writer. It never fails, so that the program that writes comes to its end.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.text.Len()
	if len(p) > room {
		b.cut = true
	}
	b.text.Write(p[:min(len(p), room)])
	return len(p), nil
}
