package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/durable"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	certLifetime = 365 * 24 * time.Hour
	// renewBefore is the remaining life below which the next start replaces a certificate.
	renewBefore = 30 * 24 * time.Hour
	// backdated is the time by which a certificate is valid before it was made: setting the clock back by an hour
	// breaks nothing.
	backdated = 90 * time.Minute
)

// Certificate is one row of the PKI: <Name>.crt and <Name>.key, signed by the authority <ca>.crt.
type Certificate struct {
	Name, ca string
	// User and groups are the subject's common name and organizations, which the API server reads as an identity.
	User   string
	groups []string
	Server bool
	client bool
	Names  []string
	IPs    []netip.Addr
}

// authorities are the three roots, by file and common name: for the cluster, for the front proxy, and for etcd.
var authorities = [...][2]string{{"ca", "kubernetes"}, {"front-proxy-ca", "front-proxy"}, {"etcd-ca", "etcd"}}

// ServerNames returns the names of the cluster's own servers, those of its nodes included.
func ServerNames(c plan.Config) []string {
	var names []string
	for _, own := range Certificates(c) {
		if own.Server {
			names = append(names, own.Names...)
		}
	}
	return names
}

// Certificates lists every identity of the cluster.
func Certificates(c plan.Config) []Certificate {
	local := netip.MustParseAddr(plan.Loopback)
	server, etcd := []netip.Addr{local, netip.IPv6Loopback(), c.Networks().ServiceIP()}, []netip.Addr{local}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	if c.Joined == nil {
		server = append(server, c.Networks().HostIPs()...)
	}
	if c.IsJoinable() {
		server, etcd = append(server, c.AdvertiseAddress), append(etcd, c.AdvertiseAddress)
	}
	// The user's own name or balancer is where clients look for the API server.
	if host, _, err := net.SplitHostPort(c.ControlPlaneEndpoint); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil {
			server = append(server, ip)
		} else {
			names = append(names, host)
		}
	}
	rows := []Certificate{{Name: plan.Administrator, ca: "ca", User: "kubernetes-admin",
		groups: []string{"system:masters"}, client: true}}
	for _, m := range c.Members() {
		rows = append(rows,
			Certificate{Name: m.Of("etcd"), ca: "etcd-ca", User: "etcd", Server: true, client: true,
				Names: []string{"localhost", m.Of("etcd")}, IPs: m.IPs(etcd...)},
			Certificate{Name: m.Of("apiserver-etcd-client"), ca: "etcd-ca", User: "kube-apiserver", client: true},
			Certificate{Name: m.Of("apiserver"), ca: "ca", User: "kube-apiserver", Server: true,
				Names: names, IPs: m.IPs(server...)},
			// The add-on kubelet-api.yaml gives it its permissions on kubelets.
			Certificate{Name: m.Of("apiserver-kubelet-client"), ca: "ca", User: "kube-apiserver-kubelet-client",
				client: true},
			Certificate{Name: m.Of("front-proxy-client"), ca: "front-proxy-ca", User: "front-proxy-client",
				client: true},
			Certificate{Name: m.Of("controller-manager"), ca: "ca", User: "system:kube-controller-manager",
				client: true},
			Certificate{Name: m.Of("scheduler"), ca: "ca", User: "system:kube-scheduler", client: true})
	}
	if plan.SendsSpans(c) && c.HasControlPlane() {
		// The API server asks for its Service's name. The add-on traces.yaml gives it its permissions. On a machine
		// that has joined with a control plane, its process sends spans on.
		rows = append(rows, Certificate{Name: tracestore.Name, ca: "ca", User: "bonsai:traces", Server: true,
			client: true, Names: []string{tracestore.Service + ".kube-system.svc"}})
	}
	for _, node := range c.Nodes {
		n := node.Name()
		rows = append(rows,
			Certificate{Name: "kubelet-" + n, ca: "ca", User: "system:node:" + n, groups: []string{"system:nodes"},
				client: true},
			Certificate{Name: "kubelet-server-" + n, ca: "ca", User: "system:node:" + n,
				groups: []string{"system:nodes"}, Server: true, Names: []string{n}, IPs: c.NodeIPs(node)},
			Certificate{Name: "proxy-" + n, ca: "ca", User: "system:kube-proxy", client: true},
			// The add-on network.yaml gives it its permissions.
			Certificate{Name: "network-" + n, ca: "ca", User: "bonsai:network", client: true})
	}
	return rows
}

// Make makes the authorities, certificates and the signing key of service accounts that are missing, expire soon, or
// are for another identity.
//
// Each start calls it under the machine's lock (start.Write). The authorities come first, since they sign the rest. A
// failure leaves what was made before it, and the next start makes the rest.
func Make(c plan.Config, now time.Time) error {
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
	for _, row := range Certificates(c) {
		if err := row.make(dir, now); err != nil {
			return fmt.Errorf("make the certificate %s: %w", row.Name, err)
		}
	}
	// The cluster's data is made next, and is nobody's without these keys.
	return errors.Join(makeSigningKey(dir), durable.SyncDir(dir))
}

// checkClock returns an error if a certificate is not valid yet by this machine's clock: then no component would trust
// another.
func checkClock(c plan.Config, now time.Time) error {
	names := make([]string, 0, 32)
	for _, a := range authorities {
		names = append(names, a[0])
	}
	for _, row := range Certificates(c) {
		names = append(names, row.Name)
	}
	for _, name := range names {
		if cert, err := ReadCertificate(c.Layout().PKI(name + ".crt")); err == nil && now.Before(cert.NotBefore) {
			return fmt.Errorf("this machine's clock says %s, and the certificate %s is valid from %s on: set the clock, or remove the cluster (bonsai down)",
				now.UTC().Format(time.RFC3339), name, cert.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// makeAuthority makes an authority unless there is one. One that expires soon keeps its key, and so everything that it
// has signed stays good: machines that have joined, and users' kubeconfigs, have time until it expires to learn of its
// new certificate.
func makeAuthority(dir, name, commonName string, now time.Time) error {
	path := filepath.Join(dir, name+".crt")
	if fresh(path, now) {
		return nil
	}
	_, signer, err := readPair(dir, name)
	key, ok := signer.(*ecdsa.PrivateKey)
	if err != nil || !ok { // there is none, or not a whole one
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return err
		}
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: commonName}, NotBefore: now.Add(-backdated), NotAfter: now.Add(caLifetime),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	return sign(dir, name, template, template, key, key)
}

// make makes the certificate unless there is a good one.
func (row Certificate) make(dir string, now time.Time) error {
	caCert, caKey, err := readPair(dir, row.ca)
	if err != nil {
		return err
	}
	if path := filepath.Join(dir, row.Name+".crt"); fresh(path, now) && row.isIn(path, caCert) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: row.User, Organization: row.groups},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(certLifetime), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: row.Names,
	}
	for _, ip := range row.IPs {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	if row.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if row.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	return sign(dir, row.Name, template, caCert, key, caKey)
}

// sign writes a certificate and its key. The key comes first: after a failure in between, a certificate without its key
// would count as made.
func sign(dir, name string, template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer) error {
	// 127 random bits: RFC 5280 wants a positive number of at most 20 octets that no other certificate of the authority
	// has.
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

// makeSigningKey makes the key pair of service-account tokens. It lives as long as the data directory, since tokens are
// valid across starts. The private key comes last, because it is what a later start looks for.
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

// fresh reports whether the certificate at path exists and stays valid for some time.
func fresh(path string, now time.Time) bool {
	cert, err := ReadCertificate(path)
	return err == nil && now.Add(renewBefore).Before(cert.NotAfter)
}

// isIn reports whether the certificate at path is of the authority and has the row's identity, names and addresses. An
// older one may have other rights, or come from a time when the cluster had other addresses, or another authority.
func (row Certificate) isIn(path string, authority *x509.Certificate) bool {
	cert, err := ReadCertificate(path)
	same := func(own netip.Addr, ip net.IP) bool { return ip.Equal(own.AsSlice()) }
	return err == nil && cert.CheckSignatureFrom(authority) == nil && slices.Equal(row.Names, cert.DNSNames) &&
		cert.Subject.CommonName == row.User && slices.Equal(cert.Subject.Organization, row.groups) &&
		slices.EqualFunc(row.IPs, cert.IPAddresses, same)
}

// readPair reads an authority and its key.
func readPair(dir, name string) (*x509.Certificate, crypto.Signer, error) {
	cert, err := ReadCertificate(filepath.Join(dir, name+".crt"))
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

// ReadCertificate reads the certificate in a PEM file.
func ReadCertificate(path string) (*x509.Certificate, error) {
	block, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(block.Bytes)
}

// readPEM reads the first block of a PEM file.
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

// writePEM writes a file that only root may read.
func writePEM(path, kind string, der []byte) error {
	return host.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
