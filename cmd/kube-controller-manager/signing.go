package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"bonsai/cmd/internal/daemon"
)

// caFiles are the certificate and the key of an authority; both or neither are given.
type caFiles struct{ cert, key string }

// signing are the flags of the certificatesigningrequest-signing-controller.
//
// One authority for all, or one for each signer, never both: nothing would say which one signs.
type signing struct {
	duration time.Duration
	// all is for every signer, or else each of single for one, in the order of signers.
	all    caFiles
	single [4]caFiles
}

// signers are Kubernetes' own, with the part of their flags' names that is theirs.
func signers() [4]struct{ flag, name string } {
	return [4]struct{ flag, name string }{
		{"kubelet-serving", certificatesv1.KubeletServingSignerName},
		{"kubelet-client", certificatesv1.KubeAPIServerClientKubeletSignerName},
		{"kube-apiserver-client", certificatesv1.KubeAPIServerClientSignerName},
		{"legacy-unknown", certificatesv1beta1.LegacyUnknownSignerName},
	}
}

func (s *signing) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.duration, "cluster-signing-duration", 365*24*time.Hour,
		"The longest that certificates are signed for; a request may ask for less (spec.expirationSeconds).")
	fs.StringVar(&s.all.cert, "cluster-signing-cert-file", "",
		"File with the PEM certificate of the CA that signs certificates of the cluster. With it, no other --cluster-signing-*-file than the key's may be given.")
	fs.StringVar(&s.all.key, "cluster-signing-key-file", "",
		"File with the PEM RSA or ECDSA key of --cluster-signing-cert-file.")
	for i, of := range signers() {
		fs.StringVar(&s.single[i].cert, "cluster-signing-"+of.flag+"-cert-file", "",
			"File with the PEM certificate of the CA of the signer "+of.name+
				". With it, --cluster-signing-{cert,key}-file must not be given.")
		fs.StringVar(&s.single[i].key, "cluster-signing-"+of.flag+"-key-file", "",
			"File with the PEM RSA or ECDSA key of --cluster-signing-"+of.flag+"-cert-file.")
	}
}

// authorities are the files of those signers that have any.
func (s *signing) authorities() map[string]caFiles {
	out := map[string]caFiles{}
	for i, of := range signers() {
		switch {
		case s.single[i] != caFiles{}:
			out[of.name] = s.single[i]
		case s.all != caFiles{}:
			out[of.name] = s.all
		}
	}
	return out
}

// validate returns every problem at once.
func (s *signing) validate() error {
	errs := []error{
		daemon.Require(s.duration > 0, "--cluster-signing-duration must be greater than 0, not %s", s.duration),
		s.all.check(""),
	}
	for i, of := range signers() {
		errs = append(errs,
			s.single[i].check(of.flag+"-"),
			daemon.Require(s.all == caFiles{} || s.single[i] == caFiles{},
				"cannot specify --cluster-signing-{cert,key}-file and --cluster-signing-%s-{cert,key}-file at the same time",
				of.flag))
	}
	return errors.Join(errs...)
}

// check refuses a certificate without its key, and the reverse. infix is what the flags of a signer have in their
// names.
func (f caFiles) check(infix string) error {
	return daemon.Require((f.cert == "") == (f.key == ""),
		"--cluster-signing-%scert-file and --cluster-signing-%skey-file must be given together", infix, infix)
}
