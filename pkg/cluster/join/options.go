package join

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/plan"
)

// Options say how a machine joins a cluster, as its user gives them.
type Options struct {
	Server string // the API server's address and port
	Token  string
	// CAHashes are the acceptable authorities of the cluster, each as sha256:<hex>; without any,
	// UnsafeSkipCAVerification must be set.
	CAHashes                 []string
	UnsafeSkipCAVerification bool
	NodeName                 string     // "": the machine's
	NodeIP                   netip.Addr // not set: the one by which the machine reaches the API server
	Labels                   map[string]string
	// ControlPlane asks for a control plane on this machine, too. CertificateKey opens the cluster's authorities.
	ControlPlane   bool
	CertificateKey string
}

// Request is what a machine asks of a cluster: Options that have been checked.
type Request struct {
	Options
	token bootstraptoken.Token
	// pins are the hashes that the cluster's authority must be among; any authority will do if there are none, which
	// the user must have asked for.
	pins []string
	key  CertificateKey // of a request for a control plane
}

// Check returns the request, or an error that names the first flag that is wrong. It sends no request.
func (o Options) Check() (Request, error) {
	r := Request{Options: o}
	host, port, err := net.SplitHostPort(o.Server)
	if number, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" || number == 0 {
		return r, fmt.Errorf("the cluster's address must be HOST:PORT, for example 192.0.2.1:6443, not %q", o.Server)
	}
	if a := o.NodeIP; a.IsValid() && (!a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast()) {
		return r, fmt.Errorf("--node-ip: must be an IPv4 address by which other machines reach this one, not %s", a)
	}
	// The API server would refuse the node, and its kubelet would try again until the patience is over.
	if err := metav1validation.ValidateLabels(o.Labels, field.NewPath("--labels")).ToAggregate(); err != nil {
		return r, err
	}
	if err := plan.CheckJoinedLabels(o.Labels); err != nil {
		return r, err
	}
	if r.token, err = bootstraptoken.Parse(o.Token); err != nil {
		return r, fmt.Errorf("--token: %w", err)
	}
	switch {
	case o.ControlPlane:
		if r.key, err = ParseCertificateKey(o.CertificateKey); err != nil {
			return r, err
		}
	case o.CertificateKey != "":
		return r, errors.New("--certificate-key: needs --control-plane")
	}
	r.pins, err = parsePins(o)
	return r, err
}

// parsePins reads the hashes of the authorities that the cluster may have. An empty list is an error unless the user
// asked to skip the check: it must never come to mean any authority by mistake.
func parsePins(o Options) ([]string, error) {
	if len(o.CAHashes) == 0 && !o.UnsafeSkipCAVerification {
		return nil, errors.New("--discovery-token-ca-cert-hash is needed (bonsai token create --print-join-command prints it), or --discovery-token-unsafe-skip-ca-verification")
	}
	form := regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	var pins []string
	for _, text := range o.CAHashes {
		if text = strings.ToLower(text); !form.MatchString(text) {
			return nil, fmt.Errorf("--discovery-token-ca-cert-hash: %q is not of the form sha256:<64 hexadecimal digits>", text)
		}
		pins = append(pins, text)
	}
	return pins, nil
}
