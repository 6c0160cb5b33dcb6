package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// followAgain is the time between two looks at a change that could not be made, and between two looks for the kubelet's
// first certificate.
const followAgain = 10 * time.Second

// Follow keeps this machine, which has joined a cluster, as the cluster says that its nodes are, until ctx ends: it
// calls apply with the machine's configuration, saved already, after each change. On the first machine it follows the
// control planes of other machines alone. A machine that is a node alone asks with the kubelet's identity, which may
// read this one ConfigMap. While the API server does not answer, the machine keeps what it knows, also over a
// restart.
//
// The supervisor runs it on a goroutine of its own. The informer calls look for one object at a time, so look needs no
// lock.
func Follow(ctx context.Context, c plan.Config, apply func(plan.Config) error, log *slog.Logger) {
	identity := c.Layout().Kubeconfig(c.Identity())
	err := host.Poll(ctx, followAgain, func() (bool, error) { return host.StatError(identity) == nil, nil })
	if err != nil {
		return // ctx has ended
	}
	api, err := client.Core(c)
	if err != nil {
		log.Error("cannot follow the cluster's settings", "err", err)
		return
	}
	done := "" // what was applied last
	look := func(obj any) {
		m, ok := obj.(*corev1.ConfigMap)
		if !ok || m.ResourceVersion == done {
			return
		}
		if err := follow(c, m, apply, log); err != nil {
			log.Error("cannot take over the cluster's settings", "err", err)
			return
		}
		done = m.ResourceVersion
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.ConfigMaps(api).ListWatch(apiclient.Selection{Namespace: metav1.NamespaceSystem,
			Fields: "metadata.name=" + nodeConfigMap, Newest: true}),
		// The resync tries again what could not be applied.
		ObjectType: &corev1.ConfigMap{}, ResyncPeriod: followAgain,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }},
	})
	informer.RunWithContext(ctx)
}

// follow makes this machine as the ConfigMap says. It saves the configuration before apply: a machine that dies in
// between starts with it.
func follow(c plan.Config, m *corev1.ConfigMap, apply func(plan.Config) error, log *slog.Logger) error {
	was, err := datadir.Load(c.DataDir)
	if err != nil {
		return err
	}
	// A machine that knew control planes keeps those rather than none: without them it would find the cluster no more.
	if peers := readPeers(m); len(peers) > 0 && !slices.Equal(peers, was.Peers) {
		log.Info("the cluster's control planes have changed", "are", peers)
		was.Peers = peers
		if err := datadir.SavePeers(was); err != nil {
			return err
		}
	}
	if was.Joined == nil { // the settings are this machine's own
		return apply(was)
	}
	f, err := readFacts(m)
	if err != nil {
		return err
	}
	now, err := f.givenTo(was)
	if err != nil {
		return err
	}
	if was.Networks() != now.Networks() {
		return errors.New("its networks are others than when this machine joined: it is another cluster (bonsai down, then join again)")
	}
	if err := f.writeAuthority(now); err != nil {
		return err
	}
	if !reflect.DeepEqual(was, now) {
		log.Info("the cluster's settings have changed", "change", plan.Difference(was, now))
		if err := datadir.Save(now); err != nil {
			return err
		}
	}
	return apply(now)
}

// readPeers reads the control planes of the cluster, in the order of their names. What cannot be read is ignored: a
// newer version's may be written otherwise, and the others are there to be asked.
func readPeers(m *corev1.ConfigMap) []plan.Peer {
	var all []plan.Peer
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		name, is := strings.CutPrefix(key, peersPrefix)
		var p plan.Peer
		if is && json.Unmarshal([]byte(m.Data[key]), &p) == nil && p.Name == name && p.API.IsValid() &&
			p.Etcd.IsValid() {
			all = append(all, p)
		}
	}
	return all
}

// readFacts reads what a node must know.
func readFacts(m *corev1.ConfigMap) (clusterFacts, error) {
	var f clusterFacts
	if err := json.Unmarshal([]byte(m.Data[nodeConfigKey]), &f); err != nil {
		return f, fmt.Errorf("read what a node must know: %w", err)
	}
	return f, nil
}

// trust makes ca the cluster's authority for this machine: in its file, which the kubelet asks for the certificates of
// its clients, and in the kubeconfigs. The file comes last, since the node's processes start again when it is another.
func trust(c plan.Config, ca []byte) error {
	err := eachKubeconfig(c, func(of *clientcmdapi.Cluster) {
		of.CertificateAuthority, of.CertificateAuthorityData = "", slices.Clone(ca)
	})
	if err != nil {
		return err
	}
	return host.WriteFile(c.Layout().PKI("ca.crt"), ca)
}

// Redirect makes the kubeconfigs of a machine that is a node alone lead to where it reaches the API servers now.
func Redirect(c plan.Config) error {
	return eachKubeconfig(c, func(of *clientcmdapi.Cluster) { of.Server = c.Server() })
}

// eachKubeconfig changes the cluster in each kubeconfig of a machine that is a node alone.
func eachKubeconfig(c plan.Config, change func(*clientcmdapi.Cluster)) error {
	l := c.Layout()
	for _, identity := range []string{c.Identity(), plan.BootstrapIdentity(c.Nodes[0].Name())} {
		k, err := clientcmd.LoadFromFile(l.Kubeconfig(identity))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, of := range k.Clusters {
			change(of)
		}
		data, err := clientcmd.Write(*k)
		if err != nil {
			return err
		}
		if err := host.WriteFile(l.Kubeconfig(identity), data); err != nil {
			return err
		}
	}
	return nil
}
