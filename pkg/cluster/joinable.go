package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/host"
)

// joinAddon is what those may do who join; a cluster has it if it is joinable.
const joinAddon = "join"

// joinable tells whether other machines can join the cluster.
func (c Config) joinable() bool { return c.AdvertiseAddress.IsValid() }

// checkAdvertised returns what is wrong with the address that is advertised.
func (c Config) checkAdvertised() error {
	switch a := c.AdvertiseAddress; {
	case !c.joinable():
		return nil
	case !a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast():
		return fmt.Errorf("must be an IPv4 address by which other machines reach this one, not %s", a)
	case c.IPFamily != IPv4:
		return errors.New("nodes on other machines need IPv4 (--ip-family ipv4)")
	case !c.Egress:
		return errors.New("nodes on other machines are reached as all that is outside (--egress)")
	case c.isOwn(a):
		return fmt.Errorf("%s is in one of the cluster's own networks", a)
	}
	return nil
}

// advertised is the API server's port for other machines.
func (c Config) advertised() PortMapping {
	return PortMapping{Address: c.AdvertiseAddress, HostPort: c.Ports.API, NodePort: c.Ports.API}
}

// advertisedServer is the API server's URL for other machines.
func (c Config) advertisedServer() string {
	return "https://" + net.JoinHostPort(c.AdvertiseAddress.String(), strconv.Itoa(c.Ports.API))
}

// openDoor leads what comes to the advertised address on to the API server, until it is shut or ctx ends.
func (c Config) openDoor(ctx context.Context, log *slog.Logger) (shut func(), err error) {
	door := newPublisher(log)
	door.leadTo([]netip.Addr{c.HostIP()})
	ctx, end := context.WithCancel(ctx)
	wait, err := door.publish(ctx, []PortMapping{c.advertised()})
	if err != nil {
		end()
		return nil, fmt.Errorf("let other machines reach the API server: %w", err)
	}
	return func() { end(); wait() }, nil
}

// joinedMachines are the addresses of nodes on other machines, in order.
func (c Config) joinedMachines(nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		for _, a := range internalIPs(n) {
			if a.Is4() && !c.isOwn(a) {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// admitJoined lets these machines into the node network (hostRules), and no others.
func (c Config) admitJoined(ctx context.Context, machines []netip.Addr) error {
	script := fmt.Sprintf("flush set ip %s %s\n", c.mark(), joinedSet)
	for _, a := range machines {
		script += fmt.Sprintf("add element ip %s %s { %s }\n", c.mark(), joinedSet, a)
	}
	return host.NFT(ctx, script)
}

// nodeConfigMap is the ConfigMap of kube-system that tells a machine that joins what its node must know, as JSON under nodeConfigKey.
const (
	nodeConfigMap = "bonsai-node-config"
	nodeConfigKey = "config.json"
)

// clusterFacts is what is in it.
type clusterFacts struct {
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	FeatureGates                         map[string]bool `json:",omitempty"`
	Mirrors                              []Mirror        `json:",omitempty"`
}

// tellJoiners writes down for other machines where the API server is, who signs its certificate, and what a node must know. The
// signatures are the bootstrap signer's.
func (c Config) tellJoiners(ctx context.Context) error {
	if !c.joinable() {
		return nil
	}
	ca, err := os.ReadFile(c.layout().pki("ca.crt"))
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters[""] = &clientcmdapi.Cluster{Server: c.advertisedServer(), CertificateAuthorityData: ca} // without a name, as kubeadm's
	info, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the cluster information: %w", err)
	}
	facts, err := json.MarshalIndent(clusterFacts{c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.FeatureGates, c.Mirrors}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what a node must know: %w", err)
	}
	return errors.Join(
		c.setConfigMap(ctx, metav1.NamespacePublic, bootstraptoken.ClusterInfo, map[string]string{bootstraptoken.ClusterInfoContent: string(info)}),
		c.setConfigMap(ctx, metav1.NamespaceSystem, nodeConfigMap, map[string]string{nodeConfigKey: string(facts)}))
}

// setConfigMap makes a ConfigMap have data, and keeps what else is in it.
func (c Config) setConfigMap(ctx context.Context, namespace, name string, data map[string]string) error {
	client, err := c.coreClient()
	if err != nil {
		return err
	}
	all := core.ConfigMaps(client)
	// Another start may write at the same moment.
	changed := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	err = retry.OnError(retry.DefaultRetry, changed, func() error {
		there, err := all.Get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			_, err = all.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
			return err
		}
		if err != nil {
			return err
		}
		whole := map[string]string{}
		maps.Copy(whole, there.Data)
		maps.Copy(whole, data)
		if maps.Equal(whole, there.Data) {
			return nil
		}
		there.Data = whole
		_, err = all.Update(ctx, there)
		return err
	})
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s: %w", name, err)
	}
	return nil
}

// caHash is how kubeadm names an authority: by its public key.
func (c Config) caHash() (string, error) {
	cert, err := readCertificate(c.layout().pki("ca.crt"))
	if err != nil {
		return "", err
	}
	return publicKeyHash(cert.RawSubjectPublicKeyInfo), nil
}

func publicKeyHash(key []byte) string {
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:])
}
