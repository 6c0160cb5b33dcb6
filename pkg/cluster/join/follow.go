package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

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
// calls apply with the machine's configuration, saved already, after each change. It asks with the kubelet's identity,
// which may read this one ConfigMap. While the API server does not answer, the machine keeps what it knows, also over a
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
		if !ok || m.Data[nodeConfigKey] == done {
			return
		}
		if err := follow(c, m, apply, log); err != nil {
			log.Error("cannot take over the cluster's settings", "err", err)
			return
		}
		done = m.Data[nodeConfigKey]
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
	f, err := readFacts(m)
	if err != nil {
		return err
	}
	was, err := datadir.Load(c.DataDir)
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
			of.CertificateAuthority, of.CertificateAuthorityData = "", slices.Clone(ca)
		}
		data, err := clientcmd.Write(*k)
		if err != nil {
			return err
		}
		if err := host.WriteFile(l.Kubeconfig(identity), data); err != nil {
			return err
		}
	}
	return host.WriteFile(l.PKI("ca.crt"), ca)
}
