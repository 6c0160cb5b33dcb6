package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// Serving holds the flags of how a component serves HTTPS that are the same for all of them.
type Serving struct {
	// MinVersion is VersionTLS12 or VersionTLS13; "" is VersionTLS12.
	MinVersion string
	// CipherSuites are Go's names of those that TLS 1.2 may use; none: Go's choice.
	CipherSuites []string
	// Curves are the ids, of Go's crypto/tls, of the key exchanges that may be used; none: Go's choice. Their order
	// means nothing.
	Curves []int32
	// NoHTTP2 leaves HTTP/1.1 alone.
	NoHTTP2 bool
	// Named are certificates for clients that ask for their names.
	Named NamedCertificates
	// MaxStreams is how many requests an HTTP/2 connection may carry at once; 0 is Go's choice.
	MaxStreams int
	// SharePort lets others that wish it, too, listen at the same address (SO_REUSEPORT); the kernel gives each some of
	// the connections.
	SharePort bool
}

// AddFlags registers the flags with upstream's defaults.
func (s *Serving) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.MinVersion, "tls-min-version", "",
		"Minimum TLS version supported. Possible values: VersionTLS12, VersionTLS13")
	fs.StringSliceVar(&s.CipherSuites, "tls-cipher-suites", nil,
		"Comma-separated list of cipher suites for TLS 1.2 connections. If omitted, the default Go cipher suites will be used.")
	fs.Int32SliceVar(&s.Curves, "tls-curve-preferences", nil,
		"Comma-separated list of the ids of key exchange mechanisms (https://pkg.go.dev/crypto/tls#CurveID) that may be used, in any order. If omitted, those of Go.")
	fs.Var(&s.Named, "tls-sni-cert-key",
		"Files with a certificate and its key, 'cert,key' or 'cert,key:name,*.domain', for clients that ask for one of its names: those given, or else those in the certificate. May be given several times.")
	fs.BoolVar(&s.NoHTTP2, "disable-http2-serving", false, "Serve HTTP/1.1 only.")
	fs.BoolVar(&s.SharePort, "permit-port-sharing", false,
		"If true, other processes that permit it, too, may listen at the same address (SO_REUSEPORT), so that a next one can begin before this one ends.")
	fs.IntVar(&s.MaxStreams, "http2-max-streams-per-connection", 0,
		"The limit for the maximum number of streams in an HTTP/2 connection. Zero means to use the server's default.")
}

// Validate returns every problem at once.
func (s Serving) Validate() error {
	_, err := s.TLS(nil, slog.New(slog.DiscardHandler))
	if s.MaxStreams < 0 {
		err = errors.Join(err, fmt.Errorf("--http2-max-streams-per-connection must not be negative: %d", s.MaxStreams))
	}
	return err
}

// Listen listens at a TCP address.
func (s Serving) Listen(address string) (net.Listener, error) {
	var c net.ListenConfig
	if s.SharePort {
		c.Control = func(_, _ string, socket syscall.RawConn) error {
			var failed error
			err := socket.Control(func(fd uintptr) {
				failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			})
			return errors.Join(err, failed)
		}
	}
	return c.Listen(context.Background(), "tcp", address) // without a name there is nothing to wait for
}

// TLS is the configuration of a server that shows each client the certificate of that moment, or that of the name it
// asks for. Changes of the named certificates are logged.
func (s Serving) TLS(current func() *tls.Certificate, log *slog.Logger) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	switch s.MinVersion {
	case "", "VersionTLS12":
	case "VersionTLS13":
		config.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("--tls-min-version: unknown tls version %q", s.MinVersion)
	}
	if s.NoHTTP2 {
		config.NextProtos = []string{"http/1.1"}
	}
	var suites, curves error
	config.CipherSuites, suites = cipherSuites(s.CipherSuites)
	config.CurvePreferences, curves = curveIDs(s.Curves)
	var named error
	config.GetCertificate, named = s.Named.choose(current, log)
	return config, errors.Join(suites, curves, named)
}

// curveIDs checks that Go knows the ids.
func curveIDs(ids []int32) (out []tls.CurveID, err error) {
	known := []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521, tls.X25519, tls.X25519MLKEM768,
		tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024}
	for _, id := range ids {
		if id < 1 || id > 1<<16-1 {
			return nil, fmt.Errorf("--tls-curve-preferences: curve preference %d is out of range (must be 1-65535)", id)
		}
		if !slices.Contains(known, tls.CurveID(id)) {
			return nil, fmt.Errorf("--tls-curve-preferences: curve preference %d is not supported by the current Go version", id)
		}
		out = append(out, tls.CurveID(id))
	}
	return out, nil
}

// cipherSuites finds suites by their names. As upstream, it takes those that Go calls insecure, which node images name,
// and two old names.
func cipherSuites(names []string) ([]uint16, error) {
	known := map[string]uint16{
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		known[s.Name] = s.ID
	}
	var out []uint16
	for _, name := range names {
		id, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("--tls-cipher-suites: cipher suite %s not supported or doesn't exist", name)
		}
		out = append(out, id)
	}
	return out, nil
}
