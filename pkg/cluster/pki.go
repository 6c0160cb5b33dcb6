package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	certLifetime = 365 * 24 * time.Hour
	// renewBefore: a certificate with less than this left is recreated at the next start.
	renewBefore = 30 * 24 * time.Hour
	// backdated is how long certificates are valid before they are made: a clock that is put back by an hour breaks nothing.
	backdated = 90 * time.Minute
)

// certificate is one row of the PKI: <name>.crt and <name>.key signed by <ca>.crt.
type certificate struct {
	name, ca string
	// user and groups are the subject's common name and organizations, which the API server reads as an identity.
	user   string
	groups []string
	server bool
	client bool
	names  []string
	ips    []netip.Addr
}

// authorities are the three roots: for the cluster, for the front proxy, and for etcd, which trusts no one else.
var authorities = [...][2]string{{"ca", "kubernetes"}, {"front-proxy-ca", "front-proxy"}, {"etcd-ca", "etcd"}}

// certificates lists every identity of the cluster.
func identities(c plan.Config) []certificate {
	local := netip.MustParseAddr(plan.Loopback)
	server := append([]netip.Addr{local, netip.IPv6Loopback(), c.Networks().ServiceIP()}, c.Networks().HostIPs()...)
	if c.IsJoinable() {
		server = append(server, c.AdvertiseAddress)
	}
	rows := []certificate{{name: plan.Administrator, ca: "ca", user: "kubernetes-admin", groups: []string{"system:masters"}, client: true}}
	for _, m := range c.Members() {
		rows = append(rows,
			certificate{name: m.Of("etcd"), ca: "etcd-ca", user: "etcd", server: true, client: true, names: []string{"localhost", m.Of("etcd")}, ips: m.IPs(local)},
			certificate{name: m.Of("apiserver-etcd-client"), ca: "etcd-ca", user: "kube-apiserver", client: true},
			certificate{name: m.Of("apiserver"), ca: "ca", user: "kube-apiserver", server: true,
				names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
				ips:   m.IPs(server...)},
			// What the API server may do on kubelets: the add-on kubelet-api.yaml.
			certificate{name: m.Of("apiserver-kubelet-client"), ca: "ca", user: "kube-apiserver-kubelet-client", client: true},
			certificate{name: m.Of("front-proxy-client"), ca: "front-proxy-ca", user: "front-proxy-client", client: true},
			certificate{name: m.Of("controller-manager"), ca: "ca", user: "system:kube-controller-manager", client: true},
			certificate{name: m.Of("scheduler"), ca: "ca", user: "system:kube-scheduler", client: true})
	}
	for _, node := range c.Nodes {
		n := node.Name()
		rows = append(rows,
			certificate{name: "kubelet-" + n, ca: "ca", user: "system:node:" + n, groups: []string{"system:nodes"}, client: true},
			certificate{name: "kubelet-server-" + n, ca: "ca", user: "system:node:" + n, groups: []string{"system:nodes"}, server: true, names: []string{n}, ips: c.NodeIPs(node)},
			certificate{name: "proxy-" + n, ca: "ca", user: "system:kube-proxy", client: true},
			// What it may do: the add-on network.yaml.
			certificate{name: "network-" + n, ca: "ca", user: "bonsai:network", client: true})
	}
	return rows
}

// makePKI makes what is missing, about to expire or for somebody else of the authorities, the certificates and the service-account signing key.
func makePKI(c plan.Config, now time.Time) error {
	dir := c.Layout().At("pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the PKI directory: %w", err)
	}
	if err := checkClock(c, now); err != nil {
		return err
	}
	for _, a := range authorities {
		if err := makeAuthority(dir, a[0], a[1], now); err != nil {
			return fmt.Errorf("make the authority %s: %w", a[0], err)
		}
	}
	for _, row := range identities(c) {
		if err := row.make(dir, now); err != nil {
			return fmt.Errorf("make the certificate %s: %w", row.name, err)
		}
	}
	return makeSigningKey(dir)
}

// checkClock returns an error if a certificate is of the future: then nobody would trust anybody.
func checkClock(c plan.Config, now time.Time) error {
	names := make([]string, 0, 32)
	for _, a := range authorities {
		names = append(names, a[0])
	}
	for _, row := range identities(c) {
		names = append(names, row.name)
	}
	for _, name := range names {
		if cert, err := readCertificate(c.Layout().PKI(name + ".crt")); err == nil && now.Before(cert.NotBefore) {
			return fmt.Errorf("this machine's clock says %s, and the certificate %s is valid from %s on: set the clock, or remove the cluster (bonsai down)",
				now.UTC().Format(time.RFC3339), name, cert.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func makeAuthority(dir, name, commonName string, now time.Time) error {
	if fresh(filepath.Join(dir, name+".crt"), now) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: commonName}, NotBefore: now.Add(-backdated), NotAfter: now.Add(caLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	return sign(dir, name, template, template, key, key)
}

func (row certificate) make(dir string, now time.Time) error {
	if path := filepath.Join(dir, row.name+".crt"); fresh(path, now) && row.isIn(path) {
		return nil
	}
	caCert, caKey, err := readPair(dir, row.ca)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: row.user, Organization: row.groups},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(certLifetime), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: row.names,
	}
	for _, ip := range row.ips {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	if row.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if row.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return sign(dir, row.name, template, caCert, key, caKey)
}

func sign(dir, name string, template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", keyDER); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der)
}

// makeSigningKey makes the key pair of service-account tokens, which lives as long as the data directory.
func makeSigningKey(dir string) error {
	path := filepath.Join(dir, "sa.key")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "sa.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", private)
}

// fresh tells whether the certificate at path exists and is good for some time; an authority is kept to its end.
func fresh(path string, now time.Time) bool {
	cert, err := readCertificate(path)
	return err == nil && now.Add(renewBefore).Before(cert.NotAfter)
}

// isIn tells whether the certificate at path is for who the row says, and for the same addresses: an older one may have more powers, or
// be of a time when the cluster was reached elsewhere.
func (row certificate) isIn(path string) bool {
	cert, err := readCertificate(path)
	same := func(own netip.Addr, ip net.IP) bool { return ip.Equal(own.AsSlice()) }
	return err == nil && cert.Subject.CommonName == row.user && slices.Equal(cert.Subject.Organization, row.groups) && slices.EqualFunc(row.ips, cert.IPAddresses, same)
}

func readPair(dir, name string) (*x509.Certificate, crypto.Signer, error) {
	cert, err := readCertificate(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, nil, err
	}
	block, err := readPEM(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	return cert, key, err
}

func readCertificate(path string) (*x509.Certificate, error) {
	block, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(block.Bytes)
}

func readPEM(path string) (*pem.Block, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", path)
	}
	return block, nil
}

func writePEM(path, kind string, der []byte) error {
	return host.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
