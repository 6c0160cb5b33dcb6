package certificates

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// usage is what a word of spec.usages means in a certificate: a bit of its key usage, or an extended key usage.
type usage struct {
	bit      x509.KeyUsage
	extended x509.ExtKeyUsage
	isBit    bool
}

// keyUsages are the words that spec.usages may have (RFC 5280, 4.2.1.3 and 4.2.1.12).
func keyUsages() map[certificatesv1.KeyUsage]usage {
	bit := func(u x509.KeyUsage) usage { return usage{bit: u, isBit: true} }
	ext := func(u x509.ExtKeyUsage) usage { return usage{extended: u} }
	return map[certificatesv1.KeyUsage]usage{
		certificatesv1.UsageSigning:           bit(x509.KeyUsageDigitalSignature),
		certificatesv1.UsageDigitalSignature:  bit(x509.KeyUsageDigitalSignature),
		certificatesv1.UsageContentCommitment: bit(x509.KeyUsageContentCommitment),
		certificatesv1.UsageKeyEncipherment:   bit(x509.KeyUsageKeyEncipherment),
		certificatesv1.UsageKeyAgreement:      bit(x509.KeyUsageKeyAgreement),
		certificatesv1.UsageDataEncipherment:  bit(x509.KeyUsageDataEncipherment),
		certificatesv1.UsageCertSign:          bit(x509.KeyUsageCertSign),
		certificatesv1.UsageCRLSign:           bit(x509.KeyUsageCRLSign),
		certificatesv1.UsageEncipherOnly:      bit(x509.KeyUsageEncipherOnly),
		certificatesv1.UsageDecipherOnly:      bit(x509.KeyUsageDecipherOnly),
		certificatesv1.UsageAny:               ext(x509.ExtKeyUsageAny),
		certificatesv1.UsageServerAuth:        ext(x509.ExtKeyUsageServerAuth),
		certificatesv1.UsageClientAuth:        ext(x509.ExtKeyUsageClientAuth),
		certificatesv1.UsageCodeSigning:       ext(x509.ExtKeyUsageCodeSigning),
		certificatesv1.UsageEmailProtection:   ext(x509.ExtKeyUsageEmailProtection),
		certificatesv1.UsageSMIME:             ext(x509.ExtKeyUsageEmailProtection),
		certificatesv1.UsageIPsecEndSystem:    ext(x509.ExtKeyUsageIPSECEndSystem),
		certificatesv1.UsageIPsecTunnel:       ext(x509.ExtKeyUsageIPSECTunnel),
		certificatesv1.UsageIPsecUser:         ext(x509.ExtKeyUsageIPSECUser),
		certificatesv1.UsageTimestamping:      ext(x509.ExtKeyUsageTimeStamping),
		certificatesv1.UsageOCSPSigning:       ext(x509.ExtKeyUsageOCSPSigning),
		certificatesv1.UsageMicrosoftSGC:      ext(x509.ExtKeyUsageMicrosoftServerGatedCrypto),
		certificatesv1.UsageNetscapeSGC:       ext(x509.ExtKeyUsageNetscapeServerGatedCrypto),
	}
}

func usageNames() []certificatesv1.KeyUsage { return slices.Sorted(maps.Keys(keyUsages())) }

// X509Usages are what usages mean in a certificate; the extended ones are sorted.
func X509Usages(all []certificatesv1.KeyUsage) (x509.KeyUsage, []x509.ExtKeyUsage, error) {
	var bits x509.KeyUsage
	extended := map[x509.ExtKeyUsage]bool{}
	known := keyUsages()
	for _, name := range all {
		u, ok := known[name]
		switch {
		case !ok:
			return 0, nil, fmt.Errorf("unrecognized usage %q", name)
		case u.isBit:
			bits |= u.bit
		default:
			extended[u.extended] = true
		}
	}
	return bits, slices.Sorted(maps.Keys(extended)), nil
}
