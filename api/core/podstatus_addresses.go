package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// address is one as upstream's messages show it, without the name of JSON.
type address struct{ IP string }

func validatePodIPs(ips []corev1.PodIP, path *field.Path) field.ErrorList {
	list := make([]address, len(ips))
	for i, ip := range ips {
		list[i] = address(ip)
	}
	return validateAddresses(list, path)
}

func validateHostIPs(hostIP string, ips []corev1.HostIP, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(ips) > 0 && ips[0].IP != hostIP {
		errs = append(errs, field.Invalid(path.Index(0).Child("ip"), ips[0].IP, "must be equal to `hostIP`"))
	}
	list := make([]address, len(ips))
	for i, ip := range ips {
		list[i] = address(ip)
	}
	return append(errs, validateAddresses(list, path)...)
}

// validateAddresses: of several addresses, there is one of each family.
func validateAddresses(list []address, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ips := make([]string, len(list))
	for i, a := range list {
		ips[i] = a.IP
		errs = append(errs, validation.IsValidIPForLegacyField(path.Index(i), a.IP, true, nil)...)
	}
	if len(list) < 2 {
		return errs
	}
	dual, err := netutils.IsDualStackIPStrings(ips)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("failed to check for dual stack with error:%w", err)))
	}
	if !dual || len(list) > 2 {
		errs = append(errs, field.Invalid(path, list, "may specify no more than one IP for each IP family"))
	}
	return errs
}
