package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// lifetime is how long an environment's certificates are good.
const lifetime = 30 * 24 * time.Hour

// authority signs the certificates of an environment.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// makeIdentities writes the authority, the servers' certificate, the key of service accounts' tokens, and a kubeconfig
// of the administrator and of each client of the API server at port.
func (e *Environment) makeIdentities(port int, now time.Time) error {
	var ca authority
	var err error
	if ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	if ca.cert, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "testenv", NotBefore: now.Add(-time.Minute)},
		ca.key); err != nil {
		return err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(ca.key)
	if err != nil {
		return err
	}
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return err
	}
	serverCert, serverKey, err := ca.sign(
		x509.Certificate{Subject: pkix.Name{CommonName: "testenv"}, DNSNames: []string{"localhost"},
			IPAddresses: []net.IP{net.ParseIP(loopback)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, now)
	if err != nil {
		return err
	}
	root, err := cert.EncodeCertificates(ca.cert)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"ca.crt": root, "ca.key": key, "sa.key": accounts,
		"server.crt": serverCert, "server.key": serverKey} {
		if err := os.WriteFile(e.at(name), data, 0o600); err != nil {
			return err
		}
	}
	for file, who := range map[string]pkix.Name{
		"admin":              {CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		"controller-manager": {CommonName: "system:kube-controller-manager"},
		"scheduler":          {CommonName: "system:kube-scheduler"},
	} {
		clientCert, clientKey, err := ca.sign(
			x509.Certificate{Subject: who, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, now)
		if err != nil {
			return err
		}
		k := clientcmdapi.NewConfig()
		k.Clusters["testenv"] = &clientcmdapi.Cluster{Server: fmt.Sprintf("https://%s:%d", loopback, port),
			CertificateAuthorityData: root}
		k.AuthInfos["testenv"] = &clientcmdapi.AuthInfo{ClientCertificateData: clientCert, ClientKeyData: clientKey}
		k.Contexts["testenv"] = &clientcmdapi.Context{Cluster: "testenv", AuthInfo: "testenv"}
		k.CurrentContext = "testenv"
		if err := clientcmd.WriteToFile(*k, e.at(file+".conf")); err != nil {
			return err
		}
	}
	return nil
}

// sign returns a certificate for a new key, both as PEM.
func (a authority) sign(template x509.Certificate, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	template.NotBefore, template.NotAfter, template.KeyUsage = now.Add(-time.Minute), now.Add(lifetime),
		x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	if certificate, err = cert.EncodeCertificates(signed); err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return certificate, key, err
}
