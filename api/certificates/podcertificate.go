package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"bonsai/api/validate"
)

const (
	// maxChain bounds a certificate and those of its authorities, in bytes.
	maxChain = 100 << 10
	// clockSkew is how far the beginning of a certificate may be from the server's time.
	clockSkew = 5 * time.Minute
	// refreshMargin is how long before its end, and after its beginning, a certificate may be renewed.
	refreshMargin = 10 * time.Minute
)

// validateAnswer checks the status that a signer writes. The first answer that ends a request stays. Without now, the
// beginning of a certificate is not compared with the time.
func validateAnswer(obj, old *podRequest, now func() time.Time) field.ErrorList {
	path, s := field.NewPath("status"), &obj.Status
	if errs := validateOutcome(s.Conditions, path.Child("conditions")); len(errs) > 0 {
		return errs
	}
	refuse := func(why string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, why)}
	}
	rest := *s
	rest.Conditions = nil
	switch c := outcome(s); {
	case apiequality.Semantic.DeepEqual(s, &old.Status):
		return nil
	case outcome(&old.Status) != nil:
		return refuse("immutable after PodCertificateRequest is issued, denied, or failed")
	case c == nil:
		return refuse(`status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case c.Type == certificatesv1.PodCertificateRequestConditionTypeIssued:
		return validateIssued(obj, path, now)
	case !apiequality.Semantic.DeepEqual(rest, certificatesv1.PodCertificateRequestStatus{}):
		return refuse("non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	}
	return nil
}

// validateOutcome checks conditions: one at most, which ends the request.
func validateOutcome(all []metav1.Condition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range all {
		at := path.Child(fmt.Sprintf("[%d]", i)) // Kubernetes' messages have this dot
		switch {
		case !ends(c.Type):
			errs = append(errs, &field.Error{Type: field.ErrorTypeNotSupported, Field: at.Child("type").String(),
				BadValue: c.Type, Detail: `supported values: "Issued", "Denied", "Failed"`})
			continue
		case c.Status != metav1.ConditionTrue:
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status,
				[]metav1.ConditionStatus{metav1.ConditionTrue}))
		}
		if i > 0 && outcome(&certificatesv1.PodCertificateRequestStatus{Conditions: all[:i]}) != nil {
			errs = append(errs, field.Invalid(at.Child("type"), c.Type,
				`There may be at most one condition with type "Issued", "Denied", or "Failed"`))
		}
	}
	return append(errs, metavalidation.ValidateConditions(all, path)...)
}

// validateIssued checks a certificate: that it is for the key of the request, and that the times of the status are its
// own. It reports the first fault, as each check relies on those before.
func validateIssued(r *podRequest, path *field.Path, now func() time.Time) field.ErrorList {
	s, chain := &r.Status, path.Child("certificateChain")
	wrong := func(at *field.Path, value any, why string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, value, why)}
	}
	if len(s.CertificateChain) > maxChain {
		return field.ErrorList{field.TooLong(chain, "", maxChain)}
	}
	block, rest := pem.Decode([]byte(s.CertificateChain))
	if block == nil {
		return wrong(chain, s.CertificateChain, "issued certificate chain must contain at least one certificate")
	}
	if block.Type != "CERTIFICATE" {
		return wrong(chain, s.CertificateChain,
			"issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return wrong(chain, s.CertificateChain, "leaf certificate does not parse as valid X.509")
	}
	if !isFor(leaf, r.Spec.StubPKCS10Request) {
		return wrong(chain, s.CertificateChain, "leaf certificate was not issued to the requested public key")
	}
	if errs := validateTimes(r, leaf, path, now); len(errs) > 0 {
		return errs
	}
	for block, rest = pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" { // the misspelling is Kubernetes' own
			return wrong(chain, s.CertificateChain,
				"issued certificate chain must consist entirely of CERTFICATE PEM blocks")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return wrong(chain, s.CertificateChain, "intermediate certificate does not parse as valid X.509")
		}
	}
	return nil
}

// isFor reports whether a certificate is for the key of a request.
func isFor(leaf *x509.Certificate, stub []byte) bool {
	request, err := x509.ParseCertificateRequest(stub)
	if err != nil {
		return false // the object was not written by this API
	}
	key, ok := request.PublicKey.(interface {
		Equal(other crypto.PublicKey) bool
	})
	return ok && key.Equal(leaf.PublicKey)
}

// validateTimes compares the times of a status with those of the certificate, and its lifetime with what was asked for.
func validateTimes(r *podRequest, leaf *x509.Certificate, path *field.Path, now func() time.Time) field.ErrorList {
	s := &r.Status
	begins, ends, refresh := path.Child("notBefore"), path.Child("notAfter"), path.Child("beginRefreshAt")
	var errs field.ErrorList
	if s.NotBefore == nil {
		errs = append(errs, field.Required(begins, "must be present and consistent with the issued certificate"))
	}
	if s.NotAfter == nil {
		errs = append(errs, field.Required(ends, "must be present and consistent with the issued certificate"))
	}
	if s.BeginRefreshAt == nil {
		errs = append(errs, field.Required(refresh,
			"must be present and in the range [notbefore+10min, notafter-10min]"))
	}
	if len(errs) > 0 {
		return errs
	}
	wrong := func(at *field.Path, value any, why string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, value, why)}
	}
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	switch {
	case !s.NotBefore.Time.Equal(leaf.NotBefore):
		return wrong(begins, s.NotBefore, "must be set to the NotBefore time encoded in the leaf certificate")
	case now != nil && now().Sub(leaf.NotBefore).Abs() > clockSkew:
		return wrong(begins, s.NotBefore, "must be set to within 5 minutes of kube-apiserver's current time")
	case !s.NotAfter.Time.Equal(leaf.NotAfter):
		return wrong(ends, s.NotAfter, "must be set to the NotAfter time encoded in the leaf certificate")
	case lifetime < validate.LeastPodCertificateLifetime*time.Second:
		return wrong(path.Child("certificateChain"), lifetime, "leaf certificate lifetime must be >= 1 hour")
	case r.Spec.MaxExpirationSeconds == nil || lifetime > time.Duration(*r.Spec.MaxExpirationSeconds)*time.Second:
		return wrong(path.Child("certificateChain"), lifetime, fmt.Sprintf(
			"leaf certificate lifetime must be <= spec.maxExpirationSeconds (%d)", ptr.Deref(r.Spec.MaxExpirationSeconds, 0)))
	case s.BeginRefreshAt.Time.Before(s.NotBefore.Add(refreshMargin)):
		return wrong(refresh, s.BeginRefreshAt, "must be at least 10 minutes after status.notBefore")
	case s.BeginRefreshAt.Time.After(s.NotAfter.Add(-refreshMargin)):
		return wrong(refresh, s.BeginRefreshAt, "must be at least 10 minutes before status.notAfter")
	}
	return nil
}
