package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestSigning: which signers have an authority, and which flags do not go together.
func TestSigning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, wrong, signers string }{
		{"", "", ""},
		{"--cluster-signing-cert-file=c --cluster-signing-key-file=k", "",
			"kubelet-serving:c:k kube-apiserver-client-kubelet:c:k kube-apiserver-client:c:k legacy-unknown:c:k"},
		{"--cluster-signing-kubelet-client-cert-file=c --cluster-signing-kubelet-client-key-file=k", "",
			"kube-apiserver-client-kubelet:c:k"},
		{"--cluster-signing-cert-file=c",
			"--cluster-signing-cert-file and --cluster-signing-key-file must be given together", ""},
		{"--cluster-signing-kubelet-serving-key-file=k",
			"--cluster-signing-kubelet-serving-cert-file and --cluster-signing-kubelet-serving-key-file must be given together", ""},
		{"--cluster-signing-cert-file=c --cluster-signing-key-file=k --cluster-signing-legacy-unknown-cert-file=c --cluster-signing-legacy-unknown-key-file=k",
			"cannot specify --cluster-signing-{cert,key}-file and --cluster-signing-legacy-unknown-{cert,key}-file at the same time", ""},
		{"--cluster-signing-duration=0", "--cluster-signing-duration must be greater than 0, not 0s", ""},
	} {
		var s signing
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.addFlags(fs)
		if err := fs.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		err := s.validate()
		if (err != nil) != (c.wrong != "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%s: %v", c.args, err)
		}
		if err != nil {
			continue
		}
		var got []string
		all := s.authorities()
		for _, of := range signers() {
			if f, ok := all[of.name]; ok {
				got = append(got, strings.TrimPrefix(of.name, "kubernetes.io/")+":"+f.cert+":"+f.key)
			}
		}
		if text := strings.Join(got, " "); text != c.signers {
			t.Errorf("%s: %s", c.args, text)
		}
	}
}
