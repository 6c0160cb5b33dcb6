package daemon

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Listener is where a component serves, and with which certificate.
type Listener struct {
	Address string // host
	Port    int    // 0 serves nothing
	// CertFile and KeyFile name the serving certificate. Both empty: a self-signed one, which is made at start and kept
	// in memory, or in CertDir under the name CertName.
	CertFile, KeyFile string
	CertDir, CertName string
}

// AddFlags registers the flags for the HTTPS server of a component that serves at all addresses, and at port unless the
// flags say otherwise. CertName is the component's.
func (l *Listener) AddFlags(fs *pflag.FlagSet, component string, port int) {
	l.CertName = component
	AddressVar(fs, &l.Address, "bind-address", "0.0.0.0",
		"The IP address on which to listen for the --secure-port port.")
	fs.IntVar(&l.Port, "secure-port", port,
		"The port on which to serve health and metrics over HTTPS; 0 serves nothing.")
	fs.StringVar(&l.CertFile, "tls-cert-file", "",
		"File with the serving certificate; without one a self-signed one is made.")
	fs.StringVar(&l.CertDir, "cert-dir", "",
		"Directory where the self-signed certificate is kept; ignored with --tls-cert-file.")
	fs.StringVar(&l.KeyFile, "tls-private-key-file", "", "File with the key of --tls-cert-file.")
}

// Validate returns what is wrong with the flags.
func (l *Listener) Validate() error {
	if l.Port < 0 || l.Port > 65535 {
		return fmt.Errorf("--secure-port %d must be between 0 and 65535, inclusive", l.Port)
	}
	return nil
}
