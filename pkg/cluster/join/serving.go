package join

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/api/certificates"
	"bonsai/pkg/apiclient"
	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// ApproveServing approves, until ctx ends, the requests of joined nodes for the certificates that their kubelets serve
// with. Kubernetes leaves that to somebody who knows which names and addresses belong to a node. servers are the names
// of the cluster's own servers, which no node may get.
//
// The supervisor runs it on a goroutine of its own. The informer calls look for one request at a time, so look needs no
// lock.
func ApproveServing(ctx context.Context, c plan.Config, servers []string, log *slog.Logger) {
	api, err := client.Core(c)
	if err != nil {
		log.Error("cannot approve the serving certificates of joined nodes", "err", err)
		return
	}
	requests := certificatesclient.CertificateSigningRequests(api)
	look := func(obj any) {
		r, ok := obj.(*certificatesv1.CertificateSigningRequest)
		if !ok || len(r.Status.Conditions) > 0 { // somebody has decided already
			return
		}
		asked, err := certificates.ParseRequest(r.Spec.Request)
		if err != nil {
			return // the API server accepts only requests that can be parsed
		}
		// Both are read at the moment of the decision: a node or an address may be new.
		nodes, err := core.Nodes(api).List(ctx, "", metav1.ListOptions{})
		var own []netip.Addr
		if err == nil {
			own, err = host.Addresses()
		}
		if err == nil {
			for _, p := range currentPeers(c) {
				own = append(own, p.API.Addr())
			}
			err = mayServe(c, servers, &r.Spec, asked, nodes, own)
		}
		if err != nil {
			log.Warn("a serving certificate is left for a person to approve", "request", r.Name, "user",
				r.Spec.Username, "err", err)
			return
		}
		// The informer's store shares the object, which must not change there.
		r = r.DeepCopy()
		certificates.SetCondition(&r.Status, certificatesv1.CertificateApproved, "AutoApproved",
			"The names and addresses are the node's own.", time.Now())
		if _, err := requests.UpdateSub(ctx, r, "approval"); err != nil {
			log.Warn("cannot approve a serving certificate", "request", r.Name, "err", err)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: requests.ListWatch(
			apiclient.Selection{Fields: "spec.signerName=" + certificatesv1.KubeletServingSignerName}),
		// The resync tries again what could not be approved: a kubelet may ask before its Node has all addresses.
		ObjectType: &certificatesv1.CertificateSigningRequest{}, ResyncPeriod: 10 * time.Second,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }},
	})
	informer.RunWithContext(ctx)
}

// currentPeers returns the control planes of all machines, as the supervisor has noted them last.
func currentPeers(c plan.Config) []plan.Peer {
	if now, err := datadir.Load(c.DataDir); err == nil {
		return now.Peers
	}
	return c.Peers
}

// mayServe returns the reason why a node may not have a serving certificate. The node must ask for itself, for no name
// except its own, and for no address except those that it has, that no other node has, and that are neither in the
// cluster's networks nor of a machine with a control plane. host are these addresses. Nodes of such machines do not
// ask: their certificates are made with the authority's key.
//
// The owner of a machine chooses its node's name when it joins. So the name must not be that of one of the cluster's
// own servers, such as kubernetes.default, nor that of a Service or pod: with such a certificate a node could pass
// itself off as them.
func mayServe(c plan.Config, servers []string, s *certificatesv1.CertificateSigningRequestSpec,
	asked *x509.CertificateRequest, nodes []*corev1.Node, host []netip.Addr) error {
	if err := certificates.CheckSigner(certificatesv1.KubeletServingSignerName, asked, s.Usages); err != nil {
		return err
	}
	if s.Username != asked.Subject.CommonName {
		return fmt.Errorf("it is for %s", asked.Subject.CommonName)
	}
	i := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return "system:node:"+n.Name == s.Username })
	if i < 0 {
		return errors.New("there is no such node")
	}
	for _, name := range asked.DNSNames {
		if name != nodes[i].Name {
			return fmt.Errorf("the name %s is not the node's", name)
		}
		if certificates.IsServiceName(name) || strings.HasSuffix(name, clusterDomain) ||
			slices.Contains(servers, name) {
			return fmt.Errorf("the name %s is the cluster's", name)
		}
	}
	for _, raw := range asked.IPAddresses {
		ip, ok := netip.AddrFromSlice(raw)
		ip = ip.Unmap()
		if !ok || ip == c.AdvertiseAddress || c.Networks().IsOwn(ip) || ip.IsLoopback() || ip.IsUnspecified() ||
			slices.Contains(host, ip) {
			return fmt.Errorf("the address %s is the cluster's", raw)
		}
		// The address must be in the status of this node and of no other one: a node writes its own status, and could
		// claim another's address.
		for j, n := range nodes {
			if slices.Contains(client.InternalIPs(n), ip) != (j == i) {
				return fmt.Errorf("the address %s is not the node's alone", raw)
			}
		}
	}
	return nil
}

// clusterDomain ends the names of all Services and pods.
const clusterDomain = ".cluster.local"
