package create

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ingress is "create ingress": rules host/path=service:port[,tls[=secret]] and a default backend.
func ingress() kind {
	var class, backend string
	var rules, annotations []string
	return kind{
		use:     "ingress NAME --rule=host/path=service:port[,tls[=secret]] ",
		aliases: []string{"ing"},
		short:   "Create an ingress with the specified name",
		long:    "Create an ingress with the specified name.",
		example: "  # Create a single ingress called 'simple' that directs requests to foo.com/bar to svc\n  # svc1:8080 with a TLS secret \"my-cert\"\n  kubectl create ingress simple --rule=\"foo.com/bar=svc1:8080,tls=my-cert\"",
		failed:  "failed to create ingress: ",
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&class, "class", "", "Ingress Class to be used")
			set.StringVar(&backend, "default-backend", "", "Default service for backend, in format of svcname:port")
			set.StringArrayVar(&rules, "rule", nil,
				"Rule in format host/path=service:port[,tls=secretname]. Paths containing the leading character '*' are considered pathType=Prefix. tls argument is optional.")
			set.StringArrayVar(&annotations, "annotation", nil,
				"Annotation to insert in the ingress object, in the format annotation=value")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			if backend == "" && len(rules) == 0 {
				return nil, errors.New("not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)")
			}
			i := &networkingv1.Ingress{
				TypeMeta:   metav1.TypeMeta{Kind: "Ingress", APIVersion: "networking.k8s.io/v1"},
				ObjectMeta: g.meta(),
			}
			if class != "" {
				i.Spec.IngressClassName = &class
			}
			for _, rule := range rules {
				r, err := parseRoute(rule)
				if err != nil {
					return nil, err
				}
				r.addTo(&i.Spec)
			}
			for _, a := range annotations {
				k, v, ok := strings.Cut(a, "=")
				if !ok {
					return nil, fmt.Errorf("annotation %s is invalid and should be in format key=[value]", a)
				}
				metav1.SetMetaDataAnnotation(&i.ObjectMeta, k, v)
			}
			if backend == "" {
				return i, nil
			}
			service, port, ok := strings.Cut(backend, ":")
			if !ok || strings.Contains(port, ":") {
				return nil, errors.New("default-backend should be in format servicename:serviceport")
			}
			i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: route{service: service, port: port}.backend()}
			return i, nil
		},
	}
}

// route is one rule of the command line.
type route struct {
	host, path    string
	service, port string
	// tls asks for TLS at the host, with the certificate of secret or, if "", of the controller.
	tls    bool
	secret string
}

// parseRoute reads host/path=service:port[,tls[=secret]]; the host may be empty.
func parseRoute(rule string) (route, error) {
	what, tls, secured := strings.Cut(rule, ",")
	target, backend, okTarget := strings.Cut(what, "=")
	host, path, okPath := strings.Cut(target, "/")
	service, port, okBackend := strings.Cut(backend, ":")
	port, _, _ = strings.Cut(port, ":")
	words := regexp.MustCompile(`^[\w.-]+$`)
	if !okTarget || !okPath || !okBackend || !words.MatchString(service) || !words.MatchString(port) ||
		!regexp.MustCompile(`^[\w*.-]*$`).MatchString(host) {
		return route{}, fmt.Errorf(
			"rule %s is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]", rule)
	}
	_, secret, _ := strings.Cut(tls, "=")
	return route{host: host, path: "/" + path, service: service, port: port, tls: secured, secret: secret}, nil
}

// backend returns the route's service; its port is a number or a name.
func (r route) backend() *networkingv1.IngressServiceBackend {
	b := &networkingv1.IngressServiceBackend{Name: r.service}
	if port := intstr.Parse(r.port); port.Type == intstr.Int {
		b.Port.Number = port.IntVal
	} else {
		b.Port.Name = port.StrVal
	}
	return b
}

// addTo adds the route to the rules of its host. A path that ends with "*" is a prefix.
func (r route) addTo(spec *networkingv1.IngressSpec) {
	pathType := networkingv1.PathTypeExact
	path, prefix := strings.CutSuffix(r.path, "*")
	if prefix {
		pathType = networkingv1.PathTypePrefix
	}
	to := networkingv1.HTTPIngressPath{Path: path, PathType: &pathType,
		Backend: networkingv1.IngressBackend{Service: r.backend()}}
	at := slices.IndexFunc(spec.Rules, func(have networkingv1.IngressRule) bool { return have.Host == r.host })
	if at < 0 {
		at = len(spec.Rules)
		spec.Rules = append(spec.Rules, networkingv1.IngressRule{Host: r.host})
		spec.Rules[at].HTTP = &networkingv1.HTTPIngressRuleValue{}
	}
	http := spec.Rules[at].HTTP
	http.Paths = append(http.Paths, to)
	if r.tls {
		r.secure(spec)
	}
}

// secure adds the host to the TLS entry of its secret. If a host is named with several secrets, the first one holds.
func (r route) secure(spec *networkingv1.IngressSpec) {
	if r.host == "" && r.secret == "" {
		return
	}
	same := -1
	for i, t := range spec.TLS {
		if slices.Contains(t.Hosts, r.host) || r.host == "" && len(t.Hosts) == 0 {
			return
		}
		if t.SecretName == r.secret {
			same = i
		}
	}
	if same < 0 {
		same = len(spec.TLS)
		spec.TLS = append(spec.TLS, networkingv1.IngressTLS{SecretName: r.secret})
	}
	if r.host != "" {
		spec.TLS[same].Hosts = append(spec.TLS[same].Hosts, r.host)
	}
}
