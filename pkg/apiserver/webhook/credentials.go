package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
)

// Credentials are by what a webhook knows the server.
type Credentials struct {
	cert, key []byte // PEM; nil: no certificate
	wrap      transport.WrapperFunc
}

// Directory has the credentials for webhooks, by upstream's rule for the names of a kubeconfig's users: that of the
// webhook's host, with its port where that is not 443; else "*.suffix", the longest first; else "*".
type Directory map[string]*Credentials

// LoadDirectory reads the users of a kubeconfig. Programs and plug-ins that would find credentials are not run.
func LoadDirectory(path string) (Directory, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := Directory{}
	for name, user := range config.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil || user.Impersonate != "" {
			return nil, fmt.Errorf("%s: users[%s]: only certificates, tokens and passwords are credentials for a webhook", path, name)
		}
		c := &rest.Config{BearerToken: user.Token, BearerTokenFile: user.TokenFile, Username: user.Username,
			Password: user.Password}
		settings, err := c.TransportConfig()
		if err != nil {
			return nil, fmt.Errorf("%s: users[%s]: %w", path, name, err)
		}
		made := &Credentials{cert: user.ClientCertificateData, key: user.ClientKeyData}
		for _, f := range []struct {
			path string
			to   *[]byte
		}{{user.ClientCertificate, &made.cert}, {user.ClientKey, &made.key}} {
			if f.path == "" || len(*f.to) > 0 {
				continue
			}
			if *f.to, err = os.ReadFile(f.path); err != nil {
				return nil, fmt.Errorf("%s: users[%s]: %w", path, name, err)
			}
		}
		if len(made.cert) > 0 || len(made.key) > 0 {
			if _, err := tls.X509KeyPair(made.cert, made.key); err != nil {
				return nil, fmt.Errorf("%s: users[%s]: %w", path, name, err)
			}
		}
		if _, err := transport.HTTPWrappersForConfig(settings, http.DefaultTransport); err != nil {
			return nil, fmt.Errorf("%s: users[%s]: %w", path, name, err)
		}
		made.wrap = func(next http.RoundTripper) http.RoundTripper {
			wrapped, err := transport.HTTPWrappersForConfig(settings, next)
			if err != nil { // which it was not when the file was read
				return failing{err}
			}
			return wrapped
		}
		out[name] = made
	}
	return out, nil
}

// around shows the credentials in each request that goes through a transport.
func (c *Credentials) around(to http.RoundTripper) http.RoundTripper {
	if c == nil {
		return to
	}
	return c.wrap(to)
}

// failing is a transport that cannot be made.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// For returns the credentials for a webhook; nil: there are none.
func (d Directory) For(h *Hook) *Credentials {
	if len(d) == 0 {
		return nil
	}
	at, err := h.location(0)
	if err != nil {
		return nil // the call itself reports the error
	}
	host := at.Host
	if name, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		host = name
	}
	if c := d[host]; c != nil {
		return c
	}
	for rest := host; ; {
		_, suffix, ok := strings.Cut(rest, ".")
		if !ok {
			return d["*"]
		}
		if c := d["*."+suffix]; c != nil {
			return c
		}
		rest = suffix
	}
}
