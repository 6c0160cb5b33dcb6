// Package selector chooses the way of the server's connections by an EgressSelectorConfiguration
// (--egress-selector-config-file, https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/): directly, or
// through a proxy by HTTP's CONNECT or by the gRPC of konnectivity. A connection that is to go through a proxy never
// goes another way: if the proxy is down, it fails.
package selector

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/safetext"
)

// The protocols by which a proxy is spoken to.
const (
	protocolDirect      = "Direct"
	protocolHTTPConnect = "HTTPConnect"
	protocolGRPC        = "GRPC"
)

// egressSelectorConfiguration is the kind of the file. Its two versions are alike.
func egressSelectorConfiguration() configfile.Kind {
	return configfile.Kind{Group: "apiserver.k8s.io", Name: "EgressSelectorConfiguration",
		Versions: []string{"v1beta1", "v1alpha1"}}
}

type configuration struct {
	metav1.TypeMeta
	EgressSelections []selection `json:"egressSelections"`
}

type selection struct {
	Name       string     `json:"name"`
	Connection connection `json:"connection"`
}

type connection struct {
	ProxyProtocol string     `json:"proxyProtocol"`
	Transport     *transport `json:"transport"`
}

type transport struct {
	TCP *tcpTransport `json:"tcp"`
	UDS *udsTransport `json:"uds"`
}

type tcpTransport struct {
	URL       string     `json:"url"`
	TLSConfig *tlsConfig `json:"tlsConfig"`
}

type udsTransport struct {
	UDSName string `json:"udsName"`
}

type tlsConfig struct {
	CABundle   string `json:"caBundle"`
	ClientKey  string `json:"clientKey"`
	ClientCert string `json:"clientCert"`
}

// read returns the content of a file, checked.
func read(path string) (*configuration, error) {
	text, err := configfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: unable to read egress selector configuration from %q [%w]",
			path, err)
	}
	c := &configuration{}
	if err := egressSelectorConfiguration().Decode(text, c); err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: %w", err)
	}
	for i := range c.EgressSelections {
		s := &c.EgressSelections[i]
		if s.Name = strings.ToLower(s.Name); s.Name == "master" { // its name before Kubernetes 1.20
			s.Name = ControlPlane
		}
	}
	if err := validate(c.EgressSelections).ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate egress selector configuration: %w", err)
	}
	return c, nil
}

// validate reports everything that is wrong, under the paths and in the words of kube-apiserver.
func validate(all []selection) field.ErrorList {
	var errs field.ErrorList
	at := field.NewPath("service", "connection")
	for i := range all {
		if err := all[i].Connection.validate(at); err != nil {
			errs = append(errs, err...)
		}
	}
	known, seen := []string{Cluster, ControlPlane, Etcd}, map[string]bool{}
	for i := range all {
		name := all[i].Name
		if seen[name] {
			errs = append(errs, field.Duplicate(at.Index(i), name))
			continue
		}
		seen[name] = true
		if !slices.Contains(known, name) {
			errs = append(errs, field.NotSupported(at, name, known))
		}
	}
	return errs
}

func (c *connection) validate(at *field.Path) field.ErrorList {
	t := c.Transport
	switch c.ProxyProtocol {
	case protocolDirect:
		if t != nil {
			return field.ErrorList{field.Invalid(at.Child("transport"), "direct", "config must be absent for direct connect")}
		}
		return nil
	case protocolHTTPConnect, protocolGRPC:
	default:
		return field.ErrorList{field.NotSupported(at.Child("protocol"), c.ProxyProtocol,
			[]string{protocolDirect, protocolHTTPConnect, protocolGRPC})}
	}
	switch {
	case t == nil:
		return field.ErrorList{field.Required(at.Child("transport"), "transport must be set for "+c.ProxyProtocol)}
	case c.ProxyProtocol == protocolGRPC && t.UDS == nil:
		return field.ErrorList{field.Required(at.Child("uds"), "UDS must be set with GRPC")}
	case t.UDS == nil && t.TCP == nil:
		return field.ErrorList{field.Required(at.Child("tcp"), "One of TCP or UDS must be set")}
	case t.UDS != nil && t.TCP != nil && c.ProxyProtocol != protocolGRPC: // which never uses TCP
		shown := struct { // as kube-apiserver shows it
			URL       string
			TLSConfig *tlsConfig
		}{safetext.URL(t.TCP.URL), t.TCP.TLSConfig}
		return field.ErrorList{field.Invalid(at.Child("tcp"), shown, "TCP and UDS cannot both be set")}
	case t.UDS == nil:
		return t.TCP.validate(at)
	case t.UDS.UDSName == "":
		return field.ErrorList{field.Invalid(at.Child("udsName"), "nil", "must be present for UDS connections")}
	}
	return nil
}

func (t *tcpTransport) validate(at *field.Path) field.ErrorList {
	secure := strings.HasPrefix(t.URL, "https://")
	switch {
	case !secure && !strings.HasPrefix(t.URL, "http://"):
		return field.ErrorList{field.Invalid(at.Child("url"), safetext.URL(t.URL),
			"supported connection protocols are http:// and https://")}
	case secure && t.TLSConfig == nil:
		return field.ErrorList{field.Required(at.Child("tlsConfig"), "TLSConfig must be present when using HTTPS")}
	case !secure && t.TLSConfig != nil:
		return field.ErrorList{field.Invalid(at.Child("tlsConfig"), "nil", "config must not be present when using HTTP")}
	}
	u, err := url.Parse(t.URL)
	if err != nil || u.Hostname() == "" {
		return field.ErrorList{field.Invalid(at.Child("url"), safetext.URL(t.URL),
			"must name a host, and may name a port")}
	}
	if u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return field.ErrorList{field.Invalid(at.Child("url"), u.Redacted(),
			"must have nothing but a scheme, a host and a port: nothing else would be used")}
	}
	if t.TLSConfig != nil {
		return t.TLSConfig.validate(at.Child("tlsConfig"))
	}
	return nil
}

func (c *tlsConfig) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(name, path, missing, required string) {
		if path == "" {
			if required != "" {
				errs = append(errs, field.Invalid(at.Child(name), "nil", required))
			}
			return
		}
		if _, err := os.Stat(path); err != nil {
			errs = append(errs, field.Invalid(at.Child(name), path, missing))
		}
	}
	check("caBundle", c.CABundle, "TLS config ca bundle does not exist", "")
	check("clientCert", c.ClientCert, "TLS client cert does not exist", "Using TLS requires clientCert")
	check("clientKey", c.ClientKey, "TLS client key does not exist", "Using TLS requires requires clientKey")
	return errs
}
