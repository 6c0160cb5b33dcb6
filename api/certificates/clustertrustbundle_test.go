package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// authority makes a certificate that signs itself, as PEM.
func authority(t *testing.T, change func(*x509.Certificate)) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, NotBefore: time.Now(),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// texts are errors as clients see them.
func texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

// TestTrustBundles: the answers are those of a kube-apiserver v1.37.2.
func TestTrustBundles(t *testing.T) {
	t.Parallel()
	a, b := authority(t, nil), authority(t, nil)
	leaf := authority(t, func(c *x509.Certificate) { c.IsCA = false })
	plain := authority(t, func(c *x509.Certificate) { c.BasicConstraintsValid = false })
	old := authority(t, func(c *x509.Certificate) { c.NotAfter = time.Unix(0, 0) })
	block := func(name, body string) string {
		return "-----BEGIN " + name + "-----\n" + body + "-----END " + name + "-----\n"
	}
	headed := strings.Replace(a, "CERTIFICATE-----\n", "CERTIFICATE-----\nA: b\n\n", 1)
	renamed := strings.ReplaceAll(a, "CERTIFICATE", "RSA KEY")
	first, _ := pem.Decode([]byte(a))
	second, _ := pem.Decode([]byte(b))
	both := block("CERTIFICATE", base64.StdEncoding.EncodeToString(slices.Concat(first.Bytes, second.Bytes))+"\n")
	const omitted = `spec.trustBundle: Invalid value: "<value omitted>": `
	const none = omitted + "at least one trust anchor must be provided"
	for name, c := range map[string]struct {
		name, generate, signer, bundle string
		errs                           []string
	}{
		"plain":                {name: "x", bundle: a},
		"of a signer":          {name: "a.example.com:s:x", signer: "a.example.com/s", bundle: a},
		"two, with comments":   {name: "x", bundle: "# hi\n" + a + "\nmore\n" + b + "end"},
		"over":                 {name: "x", bundle: old},
		"generated":            {generate: "x-", name: "x-abcde", bundle: a},
		"generated, of signer": {generate: "a.b:s:x-", name: "a.b:s:x-abcde", signer: "a.b/s", bundle: a},
		"generated, no more than a signer": {generate: "a.b:s:", name: "a.b:s:abcde", signer: "a.b/s", bundle: a,
			errs: []string{`metadata.generateName: Invalid value: "a.b:s:": ` + subdomain}},
		"generated, without signer": {generate: "x-", name: "x-abcde", signer: "a.b/s", bundle: a, errs: []string{
			`metadata.generateName: Invalid value: "x-": ClusterTrustBundle for signerName a.b/s must be named with prefix a.b:s:`,
			`metadata.name: Invalid value: "x-abcde": ClusterTrustBundle for signerName a.b/s must be named with prefix a.b:s:`}},
		"no name": {signer: "x/s", bundle: "x", errs: []string{
			`spec.signerName: Invalid value: "x": should be a domain with at least two segments separated by dots`,
			none}},
		"of a signer, plain name": {name: "x", signer: "a.b/s", bundle: a, errs: []string{
			`metadata.name: Invalid value: "x": ClusterTrustBundle for signerName a.b/s must be named with prefix a.b:s:`}},
		"of a signer, nothing else": {name: "a.b:s:", signer: "a.b/s", bundle: a,
			errs: []string{`metadata.name: Invalid value: "a.b:s:": ` + subdomain}},
		"of a signer, and another": {name: "a.b:s:a:b", signer: "a.b/s", bundle: a,
			errs: []string{`metadata.name: Invalid value: "a.b:s:a:b": ` + subdomain}},
		"of no signer": {name: "a.b:s:x", bundle: a, errs: []string{
			`metadata.name: Invalid value: "a.b:s:x": ClusterTrustBundle without signer name must not have ":" in its name`}},
		"capital": {name: "X", bundle: a, errs: []string{`metadata.name: Invalid value: "X": ` + subdomain}},
		"wrong signer": {name: "x", signer: "x/*", bundle: "x", errs: []string{
			`metadata.name: Invalid value: "x": ClusterTrustBundle for signerName x/* must be named with prefix x:*:`,
			`spec.signerName: Invalid value: "x": should be a domain with at least two segments separated by dots`,
			`spec.signerName: Invalid value: "*": validating label "*": ` + subdomain, none}},
		"no bundle":  {name: "x", errs: []string{none}},
		"text":       {name: "x", bundle: "hello", errs: []string{none}},
		"broken PEM": {name: "x", bundle: block("CERTIFICATE", "!!!!\n"), errs: []string{none}},
		"repeated": {name: "x", bundle: a + b + a + b, errs: []string{
			omitted + "duplicate trust anchor (indices [0 2])", omitted + "duplicate trust anchor (indices [1 3])"}},
		"leaf": {name: "x", bundle: a + leaf,
			errs: []string{omitted + "entry 1 does not have the CA bit set"}},
		"no constraints": {name: "x", bundle: plain,
			errs: []string{omitted + "entry 0 does not have the CA bit set"}},
		"headers": {name: "x", bundle: headed,
			errs: []string{omitted + "entry 0 has PEM block headers"}},
		"type": {name: "x", bundle: renamed,
			errs: []string{omitted + "entry 0 has bad block type: RSA KEY"}},
		"no certificate": {name: "x", bundle: block("CERTIFICATE", "AAAA\n"),
			errs: []string{omitted + "entry 0 does not parse as X.509"}},
		"empty certificate": {name: "x", bundle: block("CERTIFICATE", ""),
			errs: []string{omitted + "entry 0 does not parse as X.509"}},
		"two in a block": {name: "x", bundle: both,
			errs: []string{omitted + "entry 0 does not parse as X.509"}},
		"many faults": {name: "x", bundle: leaf + renamed + plain + headed + a + a, errs: []string{
			omitted + "entry 0 does not have the CA bit set", omitted + "entry 1 has bad block type: RSA KEY",
			omitted + "entry 2 does not have the CA bit set", omitted + "entry 3 has PEM block headers"}},
		"large": {name: "x", bundle: a + strings.Repeat("x", 1<<20-len(a))},
		"too large": {name: "x", bundle: strings.Repeat("x", 1<<20+1),
			errs: []string{"spec.trustBundle: Too long: may not be more than 1048576 bytes"}},
	} {
		bundle := &trustBundle{ObjectMeta: metav1.ObjectMeta{Name: c.name, GenerateName: c.generate}}
		bundle.Spec.SignerName, bundle.Spec.TrustBundle = c.signer, c.bundle
		if got := texts(trustBundleRow().Strategy.Validate(bundle)); !slices.Equal(got, c.errs) {
			t.Errorf("%s: %q, want %q", name, got, c.errs)
		}
	}
}

// TestTrustBundleUpdates: the answers are those of a kube-apiserver v1.37.2.
func TestTrustBundleUpdates(t *testing.T) {
	t.Parallel()
	a, b := authority(t, nil), authority(t, nil)
	for name, c := range map[string]struct {
		object, signer, bundle string
		from                   string
		errs                   []string
	}{
		"another bundle": {object: "a.b:s:x", from: "a.b/s", signer: "a.b/s", bundle: b},
		"another signer": {object: "a.b:s:x", from: "a.b/s", signer: "a.b/t", bundle: a, errs: []string{
			`metadata.name: Invalid value: "a.b:s:x": ClusterTrustBundle for signerName a.b/t must be named with prefix a.b:t:`,
			`spec.signerName: Invalid value: "a.b/t": field is immutable`}},
		"no signer": {object: "a.b:s:x", from: "a.b/s", bundle: a, errs: []string{
			`metadata.name: Invalid value: "a.b:s:x": ClusterTrustBundle without signer name must not have ":" in its name`,
			`spec.signerName: Invalid value: "": field is immutable`}},
		"all wrong": {object: "x", signer: "b", bundle: "x", errs: []string{
			`metadata.name: Invalid value: "x": ClusterTrustBundle for signerName b must be named with prefix b:`,
			`spec.signerName: Invalid value: "b": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
			`spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided`,
			`spec.signerName: Invalid value: "b": field is immutable`}},
	} {
		old := &trustBundle{ObjectMeta: metav1.ObjectMeta{Name: c.object}}
		old.Spec.SignerName, old.Spec.TrustBundle = c.from, a
		obj := old.DeepCopy()
		obj.Spec.SignerName, obj.Spec.TrustBundle = c.signer, c.bundle
		errs, _ := trustBundleRow().Strategy.ValidateUpdate(obj, old)
		if got := texts(errs); !slices.Equal(got, c.errs) {
			t.Errorf("%s: %q, want %q", name, got, c.errs)
		}
	}
}
