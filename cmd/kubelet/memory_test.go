package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/cm/memory"
)

// TestReservedMemory: flags say what the file says, and what is kept on the NUMA nodes is what is kept of the machine.
func TestReservedMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi",
			"--reserved-memory=1:memory=512Mi"}, ""},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:memory=1Gi;1:memory=512Mi"}, ""},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:memory=1Gi"},
			`reservedMemory: the total amount "1Gi" of type "memory" is not equal to the value "1536Mi" determined by Node Allocatable feature`},
		{[]string{"--memory-manager-policy=Static"},
			`reservedMemory: the total amount "0" of type "memory" is not equal to the value "1536Mi" determined`},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:memory=1Gi", "--reserved-memory=0:memory=1Gi"},
			"duplicated reservation of memory for NUMA node 0"},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:cpu=1"},
			`the limit type "cpu" for NUMA node 0 is not allowed`},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=0:memory=0"},
			"the memory of NUMA node 0 must be greater than zero"},
		{[]string{"--memory-manager-policy=Static", "--reserved-memory=memory=1Gi"},
			`"memory=1Gi" is not of the form NODE:memory=AMOUNT,…`},
		{[]string{"--memory-manager-policy=static"}, `unknown policy: "static"`},
		{[]string{"--reserved-memory=0:memory=1Gi"}, "the policy None reserves no memory"},
		{nil, ""},
	} {
		var o memoryOptions
		fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
		o.addFlags(fs)
		if err := fs.Parse(c.flags); err != nil {
			t.Fatal(err)
		}
		k := &kubeletconfig.KubeletConfiguration{KubeReserved: map[string]string{"memory": "1Gi"},
			EvictionHard: map[string]string{"memory.available": "512Mi"}}
		err := o.merge(fs, k)
		var s memory.Settings
		if err == nil {
			s, err = memorySettings(k)
		}
		if err == nil {
			err = checkReserved(k, s, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")})
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.flags, err, c.want)
		}
	}
}
