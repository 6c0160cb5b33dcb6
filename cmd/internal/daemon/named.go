package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
)

// NamedCertificates are the values of --tls-sni-cert-key: which certificate a client gets that asks for a name (SNI), or, if it asks for
// none, reaches an address.
type NamedCertificates []namedFiles

type namedFiles struct {
	cert, key string
	names     []string // none: those in the certificate
}

var _ pflag.Value = (*NamedCertificates)(nil)

// String implements pflag.Value.
func (n *NamedCertificates) String() string {
	var out []string
	for _, f := range *n {
		text := f.cert + "," + f.key
		if len(f.names) > 0 {
			text += ":" + strings.Join(f.names, ",")
		}
		out = append(out, text)
	}
	return "[" + strings.Join(out, ";") + "]"
}

// Set implements pflag.Value; each call adds one.
func (n *NamedCertificates) Set(text string) error {
	files, names, named := strings.Cut(text, ":")
	cert, key, ok := strings.Cut(files, ",")
	if !ok || cert == "" || key == "" || strings.Contains(key, ",") {
		return errors.New("expected comma separated certificate and key file paths")
	}
	f := namedFiles{cert: strings.TrimSpace(cert), key: strings.TrimSpace(key)}
	if named {
		for name := range strings.SplitSeq(names, ",") {
			f.names = append(f.names, strings.TrimSpace(name))
		}
	}
	*n = append(*n, f)
	return nil
}

// Type implements pflag.Value.
func (n *NamedCertificates) Type() string { return "namedCertKey" }

// serve has config answer with the certificate of the name that a client asks for. A name that was given wins over one that a certificate has,
// and an earlier certificate over a later one.
func (n *NamedCertificates) serve(config *tls.Config) error {
	if len(*n) == 0 {
		return nil
	}
	given, own := map[string]*tls.Certificate{}, map[string]*tls.Certificate{}
	for _, f := range *n {
		c, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("--tls-sni-cert-key: failed to load SNI cert and key: %w", err)
		}
		add := func(to map[string]*tls.Certificate, names ...string) {
			for _, name := range names {
				if name = strings.ToLower(name); to[name] == nil {
					to[name] = &c
				}
			}
		}
		if add(given, f.names...); len(f.names) > 0 {
			continue
		}
		add(own, c.Leaf.DNSNames...)
		for _, ip := range c.Leaf.IPAddresses {
			add(own, ip.String())
		}
	}
	usual := config.Certificates
	config.Certificates = nil // all is asked for
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		name := strings.ToLower(hello.ServerName)
		if name == "" && hello.Conn != nil {
			name, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
		}
		_, domain, _ := strings.Cut(name, ".")
		for _, wanted := range []string{name, "*." + domain} {
			for _, certificates := range []map[string]*tls.Certificate{given, own} {
				if c := certificates[wanted]; c != nil {
					return c, nil
				}
			}
		}
		return &usual[0], nil
	}
	return nil
}
