package sysctl

import (
	"errors"
	"fmt"

	"k8s.io/component-helpers/node/util/sysctl"
)

// errKernel is the kind of error of a machine whose kernel is not set as the kubelet expects.
var errKernel = errors.New("invalid kernel flag")

// CheckKernel compares the machine's settings of memory, panics and keys with those that the kubelet expects, as
// protectKernelDefaults wants it: the kubelet changes none. It returns an error that names each that differs; get reads
// one, such as "vm/panic_on_oom".
func CheckKernel(get func(name string) (int, error)) error {
	var errs []error
	for _, s := range []struct {
		name string
		want int
	}{
		{sysctl.VMOvercommitMemory, sysctl.VMOvercommitMemoryAlways},
		{sysctl.VMPanicOnOOM, sysctl.VMPanicOnOOMInvokeOOMKiller},
		{sysctl.KernelPanic, sysctl.KernelPanicRebootTimeout},
		{sysctl.KernelPanicOnOops, sysctl.KernelPanicOnOopsAlways},
		{sysctl.RootMaxKeys, sysctl.RootMaxKeysSetting},
		{sysctl.RootMaxBytes, sysctl.RootMaxBytesSetting},
	} {
		got, err := get(s.name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%w: %v: %w", errKernel, s.name, err))
		case got != s.want:
			errs = append(errs, fmt.Errorf("%w: %v, expected value: %v, actual value: %v", errKernel, s.name, s.want,
				got))
		}
	}
	return errors.Join(errs...)
}
