package certificates

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

const (
	// maxUID and maxStub bound texts, in bytes.
	maxUID  = 128
	maxStub = 10 << 10
)

func validatePodRequest(s *certificatesv1.PodCertificateRequestSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validate.SignerName(path.Child("signerName"), s.SignerName)
	errs = append(errs, validate.DomainAnnotations(path.Child("unverifiedUserAnnotations"),
		s.UnverifiedUserAnnotations)...)
	for _, o := range []struct {
		field, name string
		uid         types.UID
	}{
		{"pod", s.PodName, s.PodUID}, {"serviceAccount", s.ServiceAccountName, s.ServiceAccountUID},
		{"node", string(s.NodeName), s.NodeUID},
	} {
		errs = append(errs, validate.Invalid(path.Child(o.field+"Name"), o.name,
			apivalidation.NameIsDNSSubdomain(o.name, false))...)
		switch uid := path.Child(o.field + "UID"); {
		case o.uid == "":
			errs = append(errs, field.Invalid(uid, o.uid, "must not be empty"))
		case len(o.uid) > maxUID:
			errs = append(errs, field.TooLong(uid, "", maxUID))
		}
	}
	least, most := validate.PodCertificateLifetime(s.SignerName)
	switch asked := s.MaxExpirationSeconds; {
	case asked == nil:
		errs = append(errs, field.Required(path.Child("maxExpirationSeconds"), "must be set"))
	case *asked < least || *asked > most:
		errs = append(errs, field.Invalid(path.Child("maxExpirationSeconds"), *asked,
			fmt.Sprintf("must be in the range [%d, %d]", least, most)))
	}
	return append(errs, validateStub(s.StubPKCS10Request, path)...)
}

// validateStub checks the request whose public key the signer takes: that its maker has the private one.
func validateStub(der []byte, spec *field.Path) field.ErrorList {
	path := spec.Child("stubPKCS10Request")
	switch {
	case len(der) == 0: // the words are about versions that had the key in other fields, too
		return field.ErrorList{field.Invalid(spec, field.OmitValueType{},
			"exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")}
	case len(der) > maxStub:
		return field.ErrorList{field.TooLong(path, "", maxStub)}
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	if err := validateKey(request.PublicKey, path); err != nil {
		return field.ErrorList{err}
	}
	if request.CheckSignature() != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "invalid signature")}
	}
	return nil
}

// validateKey checks that signers can be expected to know a kind of public key.
func validateKey(key any, path *field.Path) *field.Error {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return field.Invalid(path, "curve "+k.Params().Name,
				"elliptic public keys must use curve P256, P384, or P521")
		}
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n != 3072 && n != 4096 {
			return field.Invalid(path, fmt.Sprintf("%d-bit modulus", n), "RSA keys must have modulus size 3072 or 4096")
		}
	default:
		return field.Invalid(path, "unknown public key type",
			"supported types are RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521, and ED25519")
	}
	return nil
}
