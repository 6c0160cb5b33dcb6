package join

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Cluster is a cluster that has proved its identity to a machine that joins it.
type Cluster struct {
	cluster *clientcmdapi.Cluster
	client  *http.Client // it trusts the cluster's authority alone
}

const (
	// discoverEvery is the time between two requests to a cluster that does not answer, or whose answer is not signed
	// with the token yet.
	discoverEvery = 250 * time.Millisecond
	// unsignedTries bounds the answers that are not signed with the token. The cluster's signer needs a second or two
	// for a new token; after that the token has expired, or was never the cluster's.
	unsignedTries = 16
)

// Discover asks the server what the cluster is, in kubeadm's way. The first answer comes over a connection that trusts
// anybody, so it must be signed with the token, which both sides know, and name an authority that the request allows.
// Then a server with a certificate of that authority must give the same answer. The token itself is not sent before all
// of that holds.
//
// Only ctx bounds the wait for a server that does not answer. An answer that is signed wrongly ends it at once: to ask
// again would give the same.
func (r Request) Discover(ctx context.Context) (*Cluster, error) {
	server, token := r.Server, r.token
	// No authority is known yet. The signature with the token is what proves the answer, and nothing secret is sent.
	anybody := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true}, Timeout: client.Timeout}
	var first string
	last, tries := errors.New("not asked yet"), 0
	err := host.Poll(ctx, discoverEvery, func() (bool, error) {
		var m *corev1.ConfigMap
		if m, last = clusterInfo(ctx, anybody, "https://"+server); last != nil {
			return false, nil
		}
		signature, signed := m.Data[bootstraptoken.ClusterInfoSignedBy+token.ID]
		if first = m.Data[bootstraptoken.ClusterInfoContent]; !signed {
			last = fmt.Errorf("nothing there is signed with the token %s: it has expired, or is another cluster's (bonsai token list, token create)", token.ID)
			if tries++; tries == unsignedTries {
				return false, last
			}
			return false, nil
		}
		if !token.Signed(first, signature) {
			return false, fmt.Errorf("%s knows the token %s and not its secret: it is another cluster, or none", server,
				token.ID)
		}
		return true, nil
	})
	if err != nil {
		err = fmt.Errorf("ask %s what the cluster is: %w", server, err)
		if last != nil && !errors.Is(err, last) {
			err = errors.Join(err, last)
		}
		return nil, err
	}
	d, err := readClusterInfo(first, r.pins)
	if err != nil {
		return nil, fmt.Errorf("read the cluster information from %s: %w", server, err)
	}
	// Whoever relays the signed answer lacks the authority's certificate, and fails here. The machine at the address
	// that the cluster gives may be dead while others have control planes: then the server that the user named is
	// asked.
	again, err := clusterInfo(ctx, d.client, d.cluster.Server)
	if named := "https://" + server; err != nil && named != d.cluster.Server {
		var second error
		if again, second = clusterInfo(ctx, d.client, named); second == nil {
			d.cluster.Server, err = named, nil
		} else {
			err = errors.Join(err, second)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ask the cluster at the address that it gives, with its authority: %w", err)
	}
	// The two answers are compared byte by byte. A cluster that publishes other information in between fails here, and
	// the user joins again.
	if again.Data[bootstraptoken.ClusterInfoContent] != first {
		return nil, fmt.Errorf("%s says something else of the cluster than %s", d.cluster.Server, server)
	}
	return d, nil
}

// readClusterInfo reads the description of a cluster, a kubeconfig. Each of its authorities must be one of pins, if
// there are any.
func readClusterInfo(content string, pins []string) (*Cluster, error) {
	k, err := clientcmd.Load([]byte(content))
	if err != nil {
		return nil, err
	}
	if len(k.Clusters) != 1 {
		return nil, fmt.Errorf("there must be one cluster in it, not %d", len(k.Clusters))
	}
	d := &Cluster{}
	for _, d.cluster = range k.Clusters { // the only one; its name means nothing
	}
	authorities, err := cert.ParseCertsPEM(d.cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("its authority: %w", err)
	}
	pool := x509.NewCertPool()
	for _, a := range authorities {
		if hash := publicKeyHash(a.RawSubjectPublicKeyInfo); len(pins) > 0 && !slices.Contains(pins, hash) {
			return nil, fmt.Errorf("its authority is %s, which --discovery-token-ca-cert-hash does not name", hash)
		}
		pool.AddCert(a)
	}
	at, err := url.Parse(d.cluster.Server)
	if err != nil {
		return nil, err
	}
	if at.Scheme != "https" || at.Port() == "" {
		return nil, fmt.Errorf("its server is %q, not an https URL with a port", d.cluster.Server)
	}
	d.client = &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true}, Timeout: client.Timeout}
	return d, nil
}

// facts asks, with the token, what a node of the cluster must know. This is the first request that sends the token: the
// client trusts the proven authority alone.
func (d *Cluster) facts(ctx context.Context, token bootstraptoken.Token) (clusterFacts, []plan.Peer, error) {
	m, err := readConfigMap(ctx, d.client, d.cluster.Server, "kube-system/configmaps/"+nodeConfigMap, token.String())
	if err != nil {
		return clusterFacts{}, nil, fmt.Errorf("ask what a node must know: %w", err)
	}
	f, err := readFacts(m)
	return f, readPeers(m), err
}

// clusterInfo reads the cluster's description, which everybody may read.
func clusterInfo(ctx context.Context, client *http.Client, server string) (*corev1.ConfigMap, error) {
	return readConfigMap(ctx, client, server, "kube-public/configmaps/"+bootstraptoken.ClusterInfo, "")
}

// readConfigMap reads a ConfigMap with a token, or anonymously if it is "".
func readConfigMap(ctx context.Context, client *http.Client, server, path, token string) (*corev1.ConfigMap, error) {
	m := &corev1.ConfigMap{}
	return m, readObject(ctx, client, server, path, token, m)
}

// readObject reads an object with a token, or anonymously if it is "".
func readObject(ctx context.Context, client *http.Client, server, path, token string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/namespaces/"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 2 << 20 // bytes, more than an object may have
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %w", req.URL, statusError(resp.StatusCode))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", req.URL, err)
	}
	return nil
}
