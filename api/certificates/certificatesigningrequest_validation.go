package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// minLifetime is the shortest lifetime in seconds that can be asked for.
const minLifetime = 600

// tolerated are the faults that an update may keep because the stored object has them: earlier versions of the API let
// them in. The fields count kinds of faults, not single faults: an object with repeated conditions may get more.
type tolerated struct {
	spec          bool // unknown and repeated usages, the legacy signer: an update never changes them
	repeated      bool // conditions of the same type
	untyped       bool // conditions without a type
	contradiction bool // approved and denied
	certificate   bool // a certificate that cannot be parsed
}

// toleratedIn returns the faults that old has and that an update may keep.
func toleratedIn(old *signingRequest) tolerated {
	t := tolerated{spec: true, contradiction: Has(&old.Status, certificatesv1.CertificateApproved) &&
		Has(&old.Status, certificatesv1.CertificateDenied)}
	seen := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range old.Status.Conditions {
		t.repeated = t.repeated || seen[c.Type]
		t.untyped = t.untyped || c.Type == ""
		seen[c.Type] = true
	}
	t.certificate = len(old.Status.Certificate) > 0 && validateCertificate(old.Status.Certificate) != nil
	return t
}

func validateNew(r *signingRequest) field.ErrorList { return validateSpec(&r.Spec, tolerated{}) }

func validateSpec(s *certificatesv1.CertificateSigningRequestSpec, allow tolerated) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if _, err := ParseRequest(s.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), s.Request, err.Error()))
	}
	if !allow.spec || len(s.Usages) == 0 {
		errs = append(errs, validateUsages(s.Usages, path.Child("usages"))...)
	}
	if !allow.spec && s.SignerName == certificatesv1beta1.LegacyUnknownSignerName {
		errs = append(errs, field.Invalid(path.Child("signerName"), s.SignerName,
			"the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, validate.SignerName(path.Child("signerName"), s.SignerName)...)
	}
	if l := s.ExpirationSeconds; l != nil && *l < minLifetime {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *l,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

// ParseRequest reads a PEM block with a PKCS#10 request, whose signature must be good.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return r, r.CheckSignature()
}

func validateUsages(all []certificatesv1.KeyUsage, path *field.Path) field.ErrorList {
	if len(all) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs, twice field.ErrorList
	seen := map[certificatesv1.KeyUsage]bool{}
	known := keyUsages()
	for i, u := range all {
		if _, ok := known[u]; !ok {
			errs = append(errs, field.NotSupported(path.Index(i), u, usageNames()))
		}
		if seen[u] {
			twice = append(twice, field.Duplicate(path.Index(i), u))
		}
		seen[u] = true
	}
	return append(errs, twice...)
}

// validateChange checks an update: the spec, which an update cannot change but must be valid, and the new status. Only
// an approval may add decisions, and nothing takes them or a failure back.
func validateChange(obj, old *signingRequest, approval bool) field.ErrorList {
	path, s := field.NewPath("status"), &obj.Status
	allow := toleratedIn(old)
	errs := validateSpec(&obj.Spec, allow)
	errs = append(errs, validateConditions(s.Conditions, path.Child("conditions"), allow)...)
	if len(s.Certificate) > 0 && !allow.certificate {
		if err := validateCertificate(s.Certificate); err != nil {
			errs = append(errs, field.Invalid(path.Child("certificate"), "<certificate data>", err.Error()))
		}
	}
	if len(old.Status.Certificate) > 0 && !bytes.Equal(s.Certificate, old.Status.Certificate) {
		errs = append(errs, field.Forbidden(path.Child("certificate"),
			"updates may not modify existing certificate content"))
	}
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
		certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		if len(conditions(s, t)) < len(conditions(&old.Status, t)) {
			errs = append(errs, field.Forbidden(path.Child("conditions"),
				fmt.Sprintf("updates may not remove a condition of type %q", t)))
		}
	}
	if approval {
		return errs
	}
	return append(errs, validateDecisions(s, &old.Status, path.Child("conditions"))...)
}

// validateDecisions refuses new and changed decisions. A client cannot change one, as old's are put back before
// (restoreDecisions). But the server then adds the times that a stored decision lacks, and Kubernetes refuses that. Its
// message shows the difference by the names of Go; ours by those of the API.
func validateDecisions(s, old *certificatesv1.CertificateSigningRequestStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
		certificatesv1.CertificateDenied} {
		now, was := conditions(s, t), conditions(old, t)
		switch {
		case len(now) > len(was):
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("updates may not add a condition of type %q", t)))
		case len(now) == len(was) && !apiequality.Semantic.DeepEqual(now, was):
			errs = append(errs, field.Forbidden(path,
				fmt.Sprintf("updates may not modify a condition of type %q\n%v", t, diff.Diff(was, now))))
		}
	}
	return errs
}

func validateConditions(all []certificatesv1.CertificateSigningRequestCondition, path *field.Path,
	allow tolerated) field.ErrorList {
	var errs field.ErrorList
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range all {
		at := path.Index(i)
		valid := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		if decision(c.Type) || c.Type == certificatesv1.CertificateFailed {
			valid = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		if !allow.untyped {
			errs = append(errs, validate.Required(at.Child("type"), string(c.Type))...)
		}
		errs = append(errs, validate.OneOf(at.Child("status"), c.Status, valid...)...)
		if seen[c.Type] && !allow.repeated {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
		if other := map[certificatesv1.RequestConditionType]certificatesv1.RequestConditionType{
			certificatesv1.CertificateApproved: certificatesv1.CertificateDenied,
			certificatesv1.CertificateDenied:   certificatesv1.CertificateApproved,
		}[c.Type]; other != "" && seen[other] && !allow.contradiction {
			errs = append(errs, field.Invalid(path, `{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}`,
				"must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, `conditions[{\"type\": \"Denied\"}]`"))
		}
	}
	return errs
}

// validateCertificate checks that text has PEM blocks with certificates, and no others.
func validateCertificate(text []byte) error {
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) > 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		found = true
	}
	if !found {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}
