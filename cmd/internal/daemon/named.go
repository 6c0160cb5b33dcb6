package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"bonsai/pkg/keypair"
)

// NamedCertificates are the values of --tls-sni-cert-key: which certificate a client gets that asks for a name (SNI),
// or, if it asks for none, reaches an address.
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

// namedPair is a certificate that is shown to clients that ask for one of its names.
type namedPair struct {
	*keypair.Pair
	given []string // none: those in the certificate
}

// choose returns which certificate a client gets: that of the name it asks for, or else current's. A name that was
// given wins over one that a certificate has, an exact one over a wildcard, and an earlier certificate over a later
// one.
func (n NamedCertificates) choose(current func() *tls.Certificate, log *slog.Logger) (
	func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	var given, own []namedPair
	for _, f := range n {
		pair, err := keypair.Load(f.cert, f.key, log)
		if err != nil {
			return nil, fmt.Errorf("--tls-sni-cert-key: failed to load SNI cert and key: %w", err)
		}
		if len(f.names) > 0 {
			given = append(given, namedPair{pair, f.names})
		} else {
			own = append(own, namedPair{pair, nil})
		}
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if len(given)+len(own) == 0 {
			return current(), nil
		}
		name := hello.ServerName
		if name == "" && hello.Conn != nil {
			name, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
		}
		_, domain, _ := strings.Cut(name, ".")
		for _, wanted := range []string{name, "*." + domain} {
			for _, pair := range slices.Concat(given, own) {
				if c := pair.Current(); pair.has(c, wanted) {
					return c, nil
				}
			}
		}
		return current(), nil
	}, nil
}

// has reports whether c, the pair's certificate, is for the name or address.
func (p namedPair) has(c *tls.Certificate, wanted string) bool {
	same := func(name string) bool { return strings.EqualFold(name, wanted) }
	if len(p.given) > 0 {
		return slices.ContainsFunc(p.given, same)
	}
	return slices.ContainsFunc(c.Leaf.DNSNames, same) || slices.ContainsFunc(c.Leaf.IPAddresses, func(ip net.IP) bool {
		return ip.String() == wanted
	})
}
