package join

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
)

// nodeConfigMap is the ConfigMap of kube-system with the clusterFacts, as JSON under nodeConfigKey. Bootstrap tokens
// and nodes may read it.
const (
	nodeConfigMap = "bonsai-node-config"
	nodeConfigKey = "config.json"
)

// Publish writes into the cluster, for machines that join: where the API server is, which authority signs its
// certificate, and what a node must know. It does nothing in a cluster that is not joinable. The bootstrap signer adds
// the signatures.
//
// A start calls it in the step that installs the add-ons (start.After). The two ConfigMaps are written separately:
// after a failure one of them may be older than the other, and the next start writes both.
func Publish(ctx context.Context, c plan.Config) error {
	if !c.IsJoinable() {
		return nil
	}
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	// The cluster has no name in it, as in kubeadm's.
	k.Clusters[""] = &clientcmdapi.Cluster{Server: c.AdvertisedServer(), CertificateAuthorityData: ca}
	info, err := clientcmd.Write(*k)
	if err != nil {
		return fmt.Errorf("encode the cluster information: %w", err)
	}
	facts, err := json.MarshalIndent(factsOf(c, ca), "", "  ")
	if err != nil {
		return fmt.Errorf("encode what a node must know: %w", err)
	}
	return errors.Join(
		setConfigMap(ctx, c, "", metav1.NamespacePublic, bootstraptoken.ClusterInfo,
			map[string]string{bootstraptoken.ClusterInfoContent: string(info)}),
		setConfigMap(ctx, c, "", metav1.NamespaceSystem, nodeConfigMap,
			map[string]string{nodeConfigKey: string(facts)}))
}

// setConfigMap gives a ConfigMap the entries of data, and keeps the others: some are the bootstrap signer's. An empty
// entry is removed. The API server of that URL is asked, or this machine's if it is "".
func setConfigMap(ctx context.Context, c plan.Config, server, namespace, name string,
	data map[string]string) error {
	return editConfigMap(ctx, c, server, namespace, name, func(whole map[string]string) {
		maps.Copy(whole, data)
		maps.DeleteFunc(whole, func(_, value string) bool { return value == "" })
	})
}

// editConfigMap is setConfigMap with any change of the entries. It calls edit again with newer entries if another has
// written meanwhile.
func editConfigMap(ctx context.Context, c plan.Config, server, namespace, name string,
	edit func(data map[string]string)) error {
	api, err := client.CoreAt(c, server)
	if err != nil {
		return err
	}
	all := core.ConfigMaps(api)
	// Another start may write at the same moment. retry.DefaultRetry makes 5 attempts, and only for these two errors.
	changed := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	write := func() error {
		there, err := all.Get(ctx, namespace, name)
		missing := apierrors.IsNotFound(err)
		if missing {
			there = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		} else if err != nil {
			return err
		}
		whole := map[string]string{}
		maps.Copy(whole, there.Data)
		edit(whole)
		// Nothing is written if nothing changes: each start calls this.
		if maps.Equal(whole, there.Data) {
			return nil
		}
		there.Data = whole
		if missing {
			_, err = all.Create(ctx, there)
		} else {
			_, err = all.Update(ctx, there)
		}
		return err
	}
	// The balancer by which this machine asks ends the connections of a control plane that goes.
	err = client.ThroughRestarts(ctx, func() error { return retry.OnError(retry.DefaultRetry, changed, write) })
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s: %w", name, err)
	}
	return nil
}

// caHash returns kubeadm's name of the cluster's authority.
func caHash(c plan.Config) (string, error) {
	authorities, err := cert.CertsFromFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		return "", err
	}
	return publicKeyHash(authorities[0].RawSubjectPublicKeyInfo), nil
}

// publicKeyHash names an authority by its public key, so that a renewed certificate of the same key keeps the name.
func publicKeyHash(key []byte) string {
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:])
}
