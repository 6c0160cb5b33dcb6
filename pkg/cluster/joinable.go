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
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
)

// openDoor leads what comes to the advertised address on to the API server, until it is shut or ctx ends.
func openDoor(ctx context.Context, c plan.Config, log *slog.Logger) (shut func(), err error) {
	door := publish.New(log)
	door.LeadTo([]netip.Addr{c.Networks().HostIP()})
	ctx, end := context.WithCancel(ctx)
	wait, err := door.Publish(ctx, []plan.PortMapping{c.Advertised()})
	if err != nil {
		end()
		return nil, fmt.Errorf("let other machines reach the API server: %w", err)
	}
	return func() { end(); wait() }, nil
}

// nodeConfigMap is the ConfigMap of kube-system that tells a machine that joins what its node must know, as JSON under
// nodeConfigKey.
const (
	nodeConfigMap = "bonsai-node-config"
	nodeConfigKey = "config.json"
)

// clusterFacts is what is in it.
type clusterFacts struct {
	NodeSubnet, PodSubnet, ServiceSubnet netip.Prefix
	FeatureGates                         map[string]bool `json:",omitempty"`
	Mirrors                              []plan.Mirror   `json:",omitempty"`
}

// tellJoiners writes down for other machines where the API server is, who signs its certificate, and what a node must
// know. The signatures are the bootstrap signer's.
func tellJoiners(ctx context.Context, c plan.Config) error {
	if !c.IsJoinable() {
		return nil
	}
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	// without a name, as kubeadm's
	k.Clusters[""] = &clientcmdapi.Cluster{Server: c.AdvertisedServer(), CertificateAuthorityData: ca}
	info, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the cluster information: %w", err)
	}
	facts, err := json.MarshalIndent(
		clusterFacts{c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.FeatureGates, c.Mirrors}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what a node must know: %w", err)
	}
	return errors.Join(
		setConfigMap(ctx, c, metav1.NamespacePublic, bootstraptoken.ClusterInfo,
			map[string]string{bootstraptoken.ClusterInfoContent: string(info)}),
		setConfigMap(ctx, c, metav1.NamespaceSystem, nodeConfigMap, map[string]string{nodeConfigKey: string(facts)}))
}

// setConfigMap makes a ConfigMap have data, and keeps what else is in it.
func setConfigMap(ctx context.Context, c plan.Config, namespace, name string, data map[string]string) error {
	client, err := client.Core(c)
	if err != nil {
		return err
	}
	all := core.ConfigMaps(client)
	// Another start may write at the same moment.
	changed := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	err = retry.OnError(retry.DefaultRetry, changed, func() error {
		there, err := all.Get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			_, err = all.Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
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
func caHash(c plan.Config) (string, error) {
	cert, err := pki.ReadCertificate(c.Layout().PKI("ca.crt"))
	if err != nil {
		return "", err
	}
	return publicKeyHash(cert.RawSubjectPublicKeyInfo), nil
}

func publicKeyHash(key []byte) string {
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:])
}
