package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

func validatePodIPs(ips []corev1.PodIP, path *field.Path) field.ErrorList {
	list := make([]string, len(ips))
	for i, ip := range ips {
		list[i] = ip.IP
	}
	return validateAddresses(list, path)
}

func validateHostIPs(hostIP string, ips []corev1.HostIP, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(ips) > 0 && ips[0].IP != hostIP {
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0].IP, "must be equal to `hostIP`"))
	}
	list := make([]string, len(ips))
	for i, ip := range ips {
		list[i] = ip.IP
	}
	return append(errs, validateAddresses(list, path)...)
}

// validateAddresses: of several addresses, there is one of each family.
func validateAddresses(ips []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), ip, true, nil)...)
	}
	if len(ips) < 2 {
		return errs
	}
	dual, err := netutils.IsDualStackIPStrings(ips)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !dual || len(ips) > 2 {
		errs = append(errs, field.Invalid(path, ips, "may specify no more than one IP for each IP family"))
	}
	return errs
}
