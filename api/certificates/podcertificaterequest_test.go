package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func stub(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newPodRequest(der []byte) *podRequest {
	return &podRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"},
		Spec: certificatesv1.PodCertificateRequestSpec{SignerName: "a.b/s", PodName: "p", PodUID: "pu",
			ServiceAccountName: "default", ServiceAccountUID: "su", NodeName: "n1", NodeUID: "nu",
			MaxExpirationSeconds: ptr.To[int32](86400), StubPKCS10Request: der}}
}

// TestPodRequests: the answers are those of a kube-apiserver v1.37.2.
func TestPodRequests(t *testing.T) {
	t.Parallel()
	good := stub(t, newKey(t, elliptic.P256()))
	forged := slices.Clone(good)
	forged[len(forged)-1] ^= 1
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	modulus := func(bits int) []byte {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		return stub(t, key)
	}
	lifetime := func(s int32) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(r *certificatesv1.PodCertificateRequestSpec) { r.MaxExpirationSeconds = &s }
	}
	ofKubernetes := func(name string, s int32) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(r *certificatesv1.PodCertificateRequestSpec) { r.SignerName, r.MaxExpirationSeconds = name, &s }
	}
	with := func(der []byte) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(r *certificatesv1.PodCertificateRequestSpec) { r.StubPKCS10Request = der }
	}
	noted := func(all map[string]string) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(r *certificatesv1.PodCertificateRequestSpec) { r.UnverifiedUserAnnotations = all }
	}
	named := func(all, uids string) func(*certificatesv1.PodCertificateRequestSpec) {
		return func(r *certificatesv1.PodCertificateRequestSpec) {
			r.PodName, r.ServiceAccountName = all, all
			r.NodeUID, r.PodUID = "nu", "pu"
			if uids != "" {
				r.NodeUID = "x"
				r.PodUID = r.NodeUID
			}
		}
	}
	const label = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
	const noted1 = "spec.unverifiedUserAnnotations: "
	const prefixed = `must be a domain-prefixed key (such as "acme.io/foo")`
	for name, c := range map[string]struct {
		change func(*certificatesv1.PodCertificateRequestSpec)
		errs   []string
	}{
		"good": {change: func(*certificatesv1.PodCertificateRequestSpec) {}},
		"nothing": {change: func(s *certificatesv1.PodCertificateRequestSpec) {
			*s = certificatesv1.PodCertificateRequestSpec{MaxExpirationSeconds: s.MaxExpirationSeconds}
		}, errs: []string{"spec.signerName: Required value", `spec.podName: Invalid value: "": ` + subdomain,
			`spec.podUID: Invalid value: "": must not be empty`,
			`spec.serviceAccountName: Invalid value: "": ` + subdomain,
			`spec.serviceAccountUID: Invalid value: "": must not be empty`,
			`spec.nodeName: Invalid value: "": ` + subdomain, `spec.nodeUID: Invalid value: "": must not be empty`,
			"spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"}},
		"names": {change: named("A_", ""), errs: []string{`spec.podName: Invalid value: "A_": ` + subdomain,
			`spec.serviceAccountName: Invalid value: "A_": ` + subdomain}},
		"any UID": {change: func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "a b/é" }},
		"long UIDs": {change: func(s *certificatesv1.PodCertificateRequestSpec) {
			s.PodUID, s.ServiceAccountUID, s.NodeUID = "a", "b", "c"
			for _, id := range []*string{(*string)(&s.PodUID), (*string)(&s.ServiceAccountUID),
				(*string)(&s.NodeUID)} {
				*id = strings.Repeat(*id, 129)
			}
		}, errs: []string{"spec.podUID: Too long: may not be more than 128 bytes",
			"spec.serviceAccountUID: Too long: may not be more than 128 bytes",
			"spec.nodeUID: Too long: may not be more than 128 bytes"}},
		"short": {change: lifetime(3599), errs: []string{
			"spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"}},
		"shortest": {change: lifetime(3600)}, "longest": {change: lifetime(7862400)},
		"long": {change: lifetime(7862401), errs: []string{
			"spec.maxExpirationSeconds: Invalid value: 7862401: must be in the range [3600, 7862400]"}},
		"kubernetes.io, a day": {change: ofKubernetes("kubernetes.io/x", 86400)},
		"kubernetes.io, more": {change: ofKubernetes("kubernetes.io/x", 86401), errs: []string{
			"spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"}},
		"below kubernetes.io, more": {change: ofKubernetes("x.kubernetes.io/x", 90000), errs: []string{
			"spec.maxExpirationSeconds: Invalid value: 90000: must be in the range [3600, 86400]"}},
		"like kubernetes.io, more": {change: ofKubernetes("notkubernetes.io/x", 86401)},
		"kubernetes.io, no path": {change: ofKubernetes("kubernetes.io", 86401), errs: []string{
			`spec.signerName: Invalid value: "kubernetes.io": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
			"spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"}},
		"no request": {change: with([]byte{0, 0, 0}), errs: []string{
			"spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"}},
		"more than a request": {change: with(append(slices.Clone(good), 0)), errs: []string{
			"spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"}},
		"forged": {change: with(forged), errs: []string{"spec.stubPKCS10Request: Invalid value: invalid signature"}},
		"large": {change: with(make([]byte, 10241)), errs: []string{
			"spec.stubPKCS10Request: Too long: may not be more than 10240 bytes"}},
		"RSA 2048": {change: with(modulus(2048)), errs: []string{
			`spec.stubPKCS10Request: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096`}},
		"RSA 3072": {change: with(modulus(3072))},
		"P-224": {change: with(stub(t, newKey(t, elliptic.P224()))), errs: []string{
			`spec.stubPKCS10Request: Invalid value: "curve P-224": elliptic public keys must use curve P256, P384, or P521`}},
		"P-384":   {change: with(stub(t, newKey(t, elliptic.P384())))},
		"P-521":   {change: with(stub(t, newKey(t, elliptic.P521())))},
		"Ed25519": {change: with(stub(t, edwards))},
		"annotations": {change: noted(map[string]string{"Example.com/Foo": "x",
			"a.b/c": strings.Repeat("d", 262144-len("Example.com/Foox")-len("a.b/c"))})},
		"plain annotations": {change: noted(map[string]string{"b": "c", "d": "e"}), errs: []string{
			noted1 + `Invalid value: "b": ` + prefixed, noted1 + `Invalid value: "d": ` + prefixed}},
		"bad annotations": {change: noted(map[string]string{"": "", "a b": ""}), errs: []string{
			noted1 + "Required value", noted1 + `Invalid value: "a b": ` + label}},
		"annotation's name": {change: noted(map[string]string{"/a": ""}),
			errs: []string{noted1 + `Invalid value: "/a": prefix part must be non-empty`}},
		"large annotations": {change: noted(map[string]string{"a_b": strings.Repeat("x", 262144)}), errs: []string{
			noted1 + `Invalid value: "a_b": ` + prefixed, noted1 + "Too long: may not be more than 262144 bytes"}},
	} {
		r := newPodRequest(good)
		c.change(&r.Spec)
		row := podRequestRow(nil)
		row.Strategy.Default(r)
		if got := texts(row.Strategy.Validate(r)); !slices.Equal(got, c.errs) {
			t.Errorf("%s: %q, want %q", name, got, c.errs)
		}
	}
}

// answered is the certificate of a request as a signer issues it, from the given time on.
func answered(t *testing.T, key any, from time.Time, lifetime time.Duration) (text string, leaf *x509.Certificate) {
	t.Helper()
	ca := newKey(t, elliptic.P256())
	leaf = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotBefore: from,
		NotAfter: from.Add(lifetime)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}, key,
		ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), leaf
}

// TestAnswers: the answers are those of a kube-apiserver v1.37.2.
func TestAnswers(t *testing.T) {
	t.Parallel()
	type status = certificatesv1.PodCertificateRequestStatus
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	key, other := newKey(t, elliptic.P256()), newKey(t, elliptic.P256())
	pending := newPodRequest(stub(t, key))
	is := func(types ...string) []metav1.Condition {
		var all []metav1.Condition
		for _, n := range types {
			all = append(all, metav1.Condition{Type: n, Status: "True", Reason: "R", Message: "m",
				LastTransitionTime: metav1.NewTime(now)})
		}
		return all
	}
	issue := func(key any, from time.Time, lifetime time.Duration, change func(*status)) status {
		text, leaf := answered(t, key, from, lifetime)
		at := func(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t)) }
		s := status{Conditions: is("Issued"), CertificateChain: text, NotBefore: at(leaf.NotBefore),
			NotAfter: at(leaf.NotAfter), BeginRefreshAt: at(leaf.NotBefore.Add(lifetime / 2))}
		if change != nil {
			change(&s)
		}
		return s
	}
	mine := func(change func(*status)) status { return issue(&key.PublicKey, now, 24*time.Hour, change) }
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(d))) }
	condition := func(change func(*metav1.Condition)) status {
		s := status{Conditions: is("Denied")}
		change(&s.Conditions[0])
		return s
	}
	authority := authority(t, nil)
	renamed := strings.ReplaceAll(authority, "CERTIFICATE", "KEY")
	const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	const chain = "status.certificateChain: Invalid value: <chain>: "
	const kinds = `supported values: "Issued", "Denied", "Failed"`
	const single = `There may be at most one condition with type "Issued", "Denied", or "Failed"`
	const final = "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
	const early = `status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"`
	const empty = "status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest"
	const refreshes = "status.beginRefreshAt: "
	for name, c := range map[string]struct {
		old, now status
		errs     []string
	}{
		"nothing": {}, "issued": {now: mine(nil)}, "denied": {now: status{Conditions: is("Denied")}},
		"failed": {now: status{Conditions: is("Failed")}},
		"not denied": {now: condition(func(c *metav1.Condition) { c.Status = "False" }),
			errs: []string{`status.conditions.[0].status: Unsupported value: "False": supported values: "True"`}},
		"another type": {now: condition(func(c *metav1.Condition) { c.Type, c.Status = "Foo", "x" }), errs: []string{
			`status.conditions.[0].type: Unsupported value: "Foo": ` + kinds,
			`status.conditions[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"`}},
		"no reason": {now: condition(func(c *metav1.Condition) { c.Reason = "" }),
			errs: []string{"status.conditions[0].reason: Required value"}},
		"no time": {now: condition(func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} }),
			errs: []string{"status.conditions[0].lastTransitionTime: Required value"}},
		"three": {now: status{Conditions: is("Denied", "Failed", "Issued")}, errs: []string{
			`status.conditions.[1].type: Invalid value: "Failed": ` + single,
			`status.conditions.[2].type: Invalid value: "Issued": ` + single}},
		"twice": {now: status{Conditions: is("Denied", "Denied")}, errs: []string{
			`status.conditions.[1].type: Invalid value: "Denied": ` + single,
			`status.conditions[1]: Duplicate value: "Denied"`}},
		"no condition": {now: mine(func(s *status) { s.Conditions = nil }), errs: []string{early}},
		"times alone": {now: status{NotBefore: at(0), NotAfter: at(0), BeginRefreshAt: at(0)},
			errs: []string{early}},
		"denied with a certificate": {now: mine(func(s *status) { s.Conditions = is("Denied") }),
			errs: []string{empty}},
		"failed with a time": {now: status{Conditions: is("Failed"), NotAfter: at(0)}, errs: []string{empty}},
		"issued without": {now: status{Conditions: is("Issued")}, errs: []string{
			chain + "issued certificate chain must contain at least one certificate"}},
		"text": {now: mine(func(s *status) { s.CertificateChain = "x" }), errs: []string{
			chain + "issued certificate chain must contain at least one certificate"}},
		"type": {now: mine(func(s *status) { s.CertificateChain = renamed + s.CertificateChain }), errs: []string{
			chain + "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"}},
		"broken": {now: mine(func(s *status) { s.CertificateChain = broken }), errs: []string{
			chain + "leaf certificate does not parse as valid X.509"}},
		"another's first": {now: mine(func(s *status) { s.CertificateChain = authority + s.CertificateChain }),
			errs: []string{chain + "leaf certificate was not issued to the requested public key"}},
		"another's": {now: issue(&other.PublicKey, now, time.Minute, func(s *status) { s.NotBefore = nil }),
			errs: []string{chain + "leaf certificate was not issued to the requested public key"}},
		"comments, headers, repeated": {now: mine(func(s *status) {
			s.CertificateChain = "hi" + "\n" +
				strings.Replace(s.CertificateChain, "CERTIFICATE-----\n", "CERTIFICATE-----\nA: b\n\n", 1) + "there" +
				authority + authority
		})},
		"another type behind": {now: mine(func(s *status) { s.CertificateChain += renamed + broken }), errs: []string{
			chain + "issued certificate chain must consist entirely of CERTFICATE PEM blocks"}},
		"broken behind": {now: mine(func(s *status) { s.CertificateChain += broken }), errs: []string{
			chain + "intermediate certificate does not parse as valid X.509"}},
		"large": {now: mine(func(s *status) {
			s.CertificateChain += strings.Repeat("x", 102400-len(s.CertificateChain))
		})},
		"too large": {now: mine(func(s *status) { s.CertificateChain = strings.Repeat("x", 102401) }), errs: []string{
			"status.certificateChain: Too long: may not be more than 102400 bytes"}},
		"no times": {now: mine(func(s *status) {
			s.NotBefore, s.NotAfter, s.BeginRefreshAt = nil, nil, nil
			s.CertificateChain += broken
		}), errs: []string{"status.notBefore: Required value: must be present and consistent with the issued certificate",
			"status.notAfter: Required value: must be present and consistent with the issued certificate",
			refreshes + "Required value: must be present and in the range [notbefore+10min, notafter-10min]"}},
		"other times": {now: mine(func(s *status) { s.NotBefore, s.NotAfter = at(time.Minute), at(0) }), errs: []string{
			`status.notBefore: Invalid value: "2026-11-30T00:01:00Z": must be set to the NotBefore time encoded in the leaf certificate`}},
		"another end": {now: mine(func(s *status) { s.NotAfter = at(0) }), errs: []string{
			`status.notAfter: Invalid value: "2026-11-30T00:00:00Z": must be set to the NotAfter time encoded in the leaf certificate`}},
		"from four minutes ago": {now: issue(&key.PublicKey, now.Add(-4*time.Minute), time.Hour, nil)},
		"from six minutes ago": {now: issue(&key.PublicKey, now.Add(-6*time.Minute), time.Hour, nil), errs: []string{
			`status.notBefore: Invalid value: "2026-11-29T23:54:00Z": must be set to within 5 minutes of kube-apiserver's current time`}},
		"in six minutes": {now: issue(&key.PublicKey, now.Add(6*time.Minute), time.Hour, nil), errs: []string{
			`status.notBefore: Invalid value: "2026-11-30T00:06:00Z": must be set to within 5 minutes of kube-apiserver's current time`}},
		"an hour": {now: issue(&key.PublicKey, now, time.Hour, nil)},
		"less": {now: issue(&key.PublicKey, now, 59*time.Minute, func(s *status) { s.BeginRefreshAt = at(0) }),
			errs: []string{"status.certificateChain: Invalid value: 3540000000000: leaf certificate lifetime must be >= 1 hour"}},
		"more": {now: issue(&key.PublicKey, now, 24*time.Hour+time.Second, nil), errs: []string{
			"status.certificateChain: Invalid value: 86401000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)"}},
		"first refresh": {now: mine(func(s *status) { s.BeginRefreshAt = at(10 * time.Minute) })},
		"refresh too early": {now: mine(func(s *status) { s.BeginRefreshAt = at(10*time.Minute - time.Second) }),
			errs: []string{refreshes + `Invalid value: "2026-11-30T00:09:59Z": must be at least 10 minutes after status.notBefore`}},
		"last refresh": {now: mine(func(s *status) { s.BeginRefreshAt = at(24*time.Hour - 10*time.Minute) })},
		"refresh too late": {now: mine(func(s *status) { s.BeginRefreshAt = at(24 * time.Hour) }), errs: []string{
			refreshes + `Invalid value: "2026-12-01T00:00:00Z": must be at least 10 minutes before status.notAfter`}},
		"denied twice": {old: status{Conditions: is("Denied")},
			now: condition(func(c *metav1.Condition) { c.Reason = "Z" }), errs: []string{final}},
		"denied, then pending": {old: status{Conditions: is("Denied")}, errs: []string{final}},
		"failed, then issued":  {old: status{Conditions: is("Failed")}, now: mine(nil), errs: []string{final}},
		"issued, then nothing": {old: mine(nil), errs: []string{final}},
		"issued, and denied": {old: mine(nil), now: mine(func(s *status) { s.Conditions = is("Issued", "Denied") }),
			errs: []string{`status.conditions.[1].type: Invalid value: "Denied": ` + single}},
		"the same again": {old: status{Conditions: is("Denied")}, now: status{Conditions: is("Denied")}},
	} {
		old, obj := pending.DeepCopy(), pending.DeepCopy()
		old.Status, obj.Status = c.old, c.now
		row := podRequestRow(func() time.Time { return now })
		errs, _ := row.Subresources[0].Strategy.ValidateUpdate(obj, old)
		got := texts(errs)
		for i := range got {
			got[i] = regexp.MustCompile(`(certificateChain: Invalid value: )".*?[^\\]?": `).ReplaceAllString(got[i],
				"${1}<chain>: ")
		}
		if !slices.Equal(got, c.errs) {
			t.Errorf("%s: %q, want %q", name, got, c.errs)
		}
	}
}

// TestPodRequestStrategies: what a write keeps of the old object.
func TestPodRequestStrategies(t *testing.T) {
	t.Parallel()
	old := newPodRequest([]byte("x"))
	old.Status.CertificateChain = "old"
	changed := func() *podRequest {
		r := old.DeepCopy()
		r.Spec.PodName, r.Status.CertificateChain, r.Labels = "q", "new", map[string]string{"a": "b"}
		return r
	}
	row := podRequestRow(nil)
	obj := changed()
	row.Strategy.PrepareUpdate(obj, old)
	errs, _ := row.Strategy.ValidateUpdate(obj, old)
	if obj.Status.CertificateChain != "old" || obj.Labels["a"] != "b" || len(errs) != 1 ||
		errs[0].Field != "spec" || errs[0].Detail != "field is immutable" {
		t.Errorf("the object: %+v, %v", obj, errs)
	}
	obj = changed()
	row.Subresources[0].Strategy.PrepareUpdate(obj, old)
	if obj.Status.CertificateChain != "new" || obj.Spec.PodName != "p" || len(obj.Labels) != 0 {
		t.Errorf("the status: %+v", obj)
	}
	obj = changed()
	obj.Spec.MaxExpirationSeconds = nil
	row.Strategy.Default(obj)
	row.Strategy.PrepareCreate(obj)
	if *obj.Spec.MaxExpirationSeconds != 86400 || obj.Status.CertificateChain != "" {
		t.Errorf("a new one: %+v", obj)
	}
}
