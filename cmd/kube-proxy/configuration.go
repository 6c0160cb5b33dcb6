package main

import (
	"fmt"
	"log/slog"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// configuration is the part of kubeproxy.config.k8s.io/v1alpha1 KubeProxyConfiguration that means something here, and what is
// accepted beside it.
type configuration struct {
	metav1.TypeMeta    `json:",inline"`
	BindAddress        string                 `json:"bindAddress"`
	HealthzBindAddress string                 `json:"healthzBindAddress"`
	MetricsBindAddress string                 `json:"metricsBindAddress"`
	ClientConnection   clientConnection       `json:"clientConnection"`
	ClusterCIDR        string                 `json:"clusterCIDR"`
	ConfigSyncPeriod   metav1.Duration        `json:"configSyncPeriod"`
	Conntrack          conntrackConfiguration `json:"conntrack"`
	HostnameOverride   string                 `json:"hostnameOverride"`
	Mode               string                 `json:"mode"`
	NFTables           rulesConfiguration     `json:"nftables"`
	IPTables           rulesConfiguration     `json:"iptables"`
	NodePortAddresses  []string               `json:"nodePortAddresses"`
	OOMScoreAdj        *int32                 `json:"oomScoreAdj"`
	DetectLocalMode    string                 `json:"detectLocalMode"`
	FeatureGates       map[string]bool        `json:"featureGates"`
}

type clientConnection struct {
	Kubeconfig         string  `json:"kubeconfig"`
	AcceptContentTypes string  `json:"acceptContentTypes"`
	ContentType        string  `json:"contentType"`
	QPS                float32 `json:"qps"`
	Burst              int     `json:"burst"`
}

type conntrackConfiguration struct {
	MaxPerCore            int32           `json:"maxPerCore"`
	Min                   int32           `json:"min"`
	TCPBeLiberal          bool            `json:"tcpBeLiberal"`
	TCPEstablishedTimeout metav1.Duration `json:"tcpEstablishedTimeout"`
	TCPCloseWaitTimeout   metav1.Duration `json:"tcpCloseWaitTimeout"`
	UDPTimeout            metav1.Duration `json:"udpTimeout"`
	UDPStreamTimeout      metav1.Duration `json:"udpStreamTimeout"`
}

// rulesConfiguration is that of one mode.
type rulesConfiguration struct {
	MasqueradeAll      bool            `json:"masqueradeAll"`
	MasqueradeBit      *int32          `json:"masqueradeBit"`
	SyncPeriod         metav1.Duration `json:"syncPeriod"`
	MinSyncPeriod      metav1.Duration `json:"minSyncPeriod"`
	LocalhostNodePorts *bool           `json:"localhostNodePorts"` // of iptables alone
}

// rules is the configuration of the mode that is chosen.
func (c *configuration) rules() *rulesConfiguration {
	if c.Mode == modeIPTables {
		return &c.IPTables
	}
	return &c.NFTables
}

const (
	configAPIVersion = "kubeproxy.config.k8s.io/v1alpha1"
	configKind       = "KubeProxyConfiguration"
)

// readConfiguration reads the file at path. Fields that are not known (of other modes) are named in a warning and ignored.
func readConfiguration(path string, log *slog.Logger) (*configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	c := &configuration{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		*c = configuration{}
		if lenient := yaml.Unmarshal(data, c); lenient != nil {
			return nil, fmt.Errorf("--config %q: %w", path, lenient)
		}
		log.Warn("Parts of the configuration file are ignored", "file", path, "err", err)
	}
	if c.APIVersion != configAPIVersion || c.Kind != configKind {
		return nil, fmt.Errorf("--config %q: want apiVersion %s, kind %s; got %q, %q", path, configAPIVersion, configKind, c.APIVersion, c.Kind)
	}
	return c, nil
}
